#include "runtime/tokenizer/document_reader.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/data/file_kind.h"
#include "runtime/data/token_header.h"
#include "schemas/status.h"

namespace planc {
namespace {

bool IsJsonName(const std::string& path) {
  return absl::EndsWith(path, ".jsonl") || absl::EndsWith(path, ".ndjson") ||
         absl::EndsWith(path, ".json");
}

// Refuses what is no text; JSON needs to be named so.
absl::Status CheckText(const MappedFile& file, const std::string& path, bool json) {
  const std::optional<FileKind> kind = RecognizeFile(file, path);
  if (kind.has_value() && !kind->is_text) {
    return absl::InvalidArgumentError(RefusalOfKind(path, *kind, "text"));
  }
  if (kind.has_value() && kind->name == "JSON" && !json) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is JSON, not text; give --json-key=KEY to take the text of each line from it"));
  }
  PLANC_ASSIGN_OR_RETURN(const auto header, ReadTokenHeader(file, path));
  if (!header.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds tokens already"));
}

}  // namespace

absl::StatusOr<DocumentReader> DocumentReader::Open(const std::vector<std::string>& paths,
                                                    bool all_json) {
  DocumentReader reader;
  std::vector<std::string> defects;
  for (const std::string& path : paths) {
    absl::StatusOr<MappedFile> file = MappedFile::Open(path);
    const bool json = all_json || IsJsonName(path);
    const absl::Status status = file.ok() ? CheckText(*file, path, json) : file.status();
    if (!status.ok()) {
      defects.emplace_back(status.message());
      continue;
    }
    reader.bytes_ += file->size();
    reader.inputs_.push_back(std::make_unique<Input>(Input{path, *std::move(file), json}));
  }
  if (!defects.empty()) return absl::InvalidArgumentError(absl::StrJoin(defects, "\n"));
  return reader;
}

DocumentBatch DocumentReader::Next(int64_t bytes) {
  DocumentBatch batch;
  int64_t taken = 0;
  while (taken < bytes && input_ < inputs_.size()) {
    const Input& input = *inputs_[input_];
    const int64_t left = input.file.size() - offset_;
    if (left == 0) {
      ++input_;
      offset_ = 0;
      line_ = 1;
      continue;
    }
    const char* const begin = input.file.data() + offset_;
    int64_t length = left;
    int64_t step = left;
    if (input.json) {
      const void* const newline = std::memchr(begin, '\n', static_cast<size_t>(left));
      if (newline != nullptr) {
        length = static_cast<const char*>(newline) - begin;
        step = length + 1;
      }
    }
    const std::string_view text(begin, static_cast<size_t>(length));
    const bool blank = input.json && text.find_first_not_of(" \t\r") == std::string_view::npos;
    if (!blank) batch.push_back({&input.path, input.json ? line_ : 0, text});
    ++line_;
    offset_ += step;
    bytes_read_ += step;
    taken += step;
  }
  return batch;
}

std::string DocumentPlace(const Document& document) {
  if (document.line == 0) return absl::StrCat(*document.path, ": ");
  return absl::StrCat(*document.path, ":", document.line, ": ");
}

absl::StatusOr<std::string> DocumentText(const Document& document, const std::string& key) {
  if (document.line == 0) return std::string(document.bytes);
  const auto error = [&](const std::string& reason) {
    return absl::InvalidArgumentError(absl::StrCat(DocumentPlace(document), reason));
  };
  nlohmann::json json = nlohmann::json::parse(document.bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return error("the line is not whole JSON");
  if (!json.is_object()) {
    return error("the line is no JSON object; JSON lines hold one object a line");
  }
  const auto member = json.find(key);
  if (member == json.end()) {
    std::vector<std::string> keys;
    for (const auto& [name, value] : json.items()) keys.push_back(name);
    return error(absl::StrCat("there is no key `", key, "`; keys are: ", absl::StrJoin(keys, ", "),
                              "; --json-key names one"));
  }
  if (!member->is_string()) return error(absl::StrCat("the value of `", key, "` is no text"));
  return std::move(member->get_ref<std::string&>());
}

}  // namespace planc
