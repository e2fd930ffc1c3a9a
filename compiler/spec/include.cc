#include "compiler/spec/include.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/spec/yaml_reader.h"
#include "schemas/counted.h"

namespace planc {
namespace {

void EraseKey(const std::string& key, Node* map) {
  auto& entries = map->entries;
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const Node::Entry& entry) { return entry.key == key; }),
                entries.end());
}

// State of one recursive read.
struct IncludeReader {
  const FileReader& reader;
  SourceTexts& sources;
  DiagnosticList& diagnostics;
  std::vector<std::string> chain;  // files being read, outermost first
  int files_read = 0;

  std::optional<Node> Read(const std::string& path, const Span& named_at);
  bool MergeIncludes(const std::string& path, const Node& include, Node& merged);
};

std::optional<Node> IncludeReader::Read(const std::string& path, const Span& named_at) {
  if (std::find(chain.begin(), chain.end(), path) != chain.end()) {
    diagnostics.Add(
        DiagnosticCode::kIncludeCycle, named_at,
        absl::StrCat("a file includes itself: ", absl::StrJoin(chain, " -> "), " -> ", path));
    return std::nullopt;
  }
  if (++files_read > kMaxFilesOfJob) {
    diagnostics.Add(DiagnosticCode::kTooManyIncludes, named_at,
                    absl::StrCat("the job reads more than ", Counted(kMaxFilesOfJob, "file")));
    return std::nullopt;
  }
  absl::StatusOr<std::string> text = reader(path);
  if (!text.ok()) {
    diagnostics.Add(DiagnosticCode::kFileUnreadable, named_at,
                    absl::StrCat("cannot read ", path, ": ", text.status().message()));
    return std::nullopt;
  }
  // Some editors put a byte order mark at the start of UTF-8.
  constexpr char kByteOrderMark[] = "\xef\xbb\xbf";
  if (absl::StartsWith(*text, kByteOrderMark)) text->erase(0, sizeof kByteOrderMark - 1);
  sources[path] = *text;
  std::optional<Node> root = ReadYaml(path, *text, /*line_offset=*/0, diagnostics);
  if (!root.has_value()) return std::nullopt;
  if (root->kind != Node::Kind::kMap) {
    diagnostics.Add(DiagnosticCode::kNotASection, Span{path, 1, 1, 1},
                    absl::StrCat("the file is ", KindName(root->kind), ", not a map of sections"));
    return std::nullopt;
  }
  const Node* include = root->Find("include");
  if (include == nullptr) return root;

  Node merged;
  merged.kind = Node::Kind::kMap;
  merged.span = root->span;
  chain.push_back(path);
  const bool ok = MergeIncludes(path, *include, merged);
  chain.pop_back();
  if (!ok) return std::nullopt;
  EraseKey("include", &*root);
  MergeInto(merged, *root);
  return merged;
}

bool IncludeReader::MergeIncludes(const std::string& path, const Node& include, Node& merged) {
  std::vector<Node> paths = include.items;
  if (include.kind == Node::Kind::kScalar) paths = {include};
  const bool all_texts = std::all_of(paths.begin(), paths.end(), [](const Node& item) {
    return item.kind == Node::Kind::kScalar && !item.text.empty();
  });
  if (paths.empty() || !all_texts) {
    diagnostics.Add(DiagnosticCode::kIncludeWrongType, include.span,
                    "include must be one path or a list of paths");
    return false;
  }
  bool ok = true;
  for (const Node& item : paths) {
    std::optional<Node> included = Read(PathFrom(path, item.text), item.span);
    if (files_read > kMaxFilesOfJob) return false;
    if (!included.has_value()) {
      ok = false;
      continue;
    }
    EraseKey(kPartialKey, &*included);
    MergeInto(merged, *included);
  }
  return ok;
}

// Reads the value of one override; `line` is the number of the argument.
std::optional<Node> ReadSetValue(const std::string& set, size_t equals, int line,
                                 DiagnosticList& diagnostics) {
  // Blanks stand in for the key, so that columns are those of the argument.
  std::string text(equals + 1, ' ');
  text += set.substr(equals + 1);
  std::optional<Node> value = ReadYaml(kSetFile, text, line - 1, diagnostics);
  if (value.has_value() && value->kind == Node::Kind::kNull) {
    value->span = Span{kSetFile, line, 1, static_cast<int>(equals)};
  }
  return value;
}

// A map with one entry that holds `value` at the end of `keys`.
Node Nest(const std::vector<std::string>& keys, Node value, int line, size_t key_length) {
  size_t end = key_length;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const size_t begin = end - key->size();
    Node map;
    map.kind = Node::Kind::kMap;
    map.span = Span{kSetFile, line, 1, static_cast<int>(key_length)};
    Span key_span{kSetFile, line, static_cast<int>(begin) + 1, static_cast<int>(key->size())};
    map.entries.push_back({*key, key_span, std::move(value)});
    value = std::move(map);
    end = begin == 0 ? 0 : begin - 1;  // the dot
  }
  return value;
}

}  // namespace

std::string PathFrom(const std::string& from_file, const std::string& path) {
  std::filesystem::path result(path);
  if (result.is_relative() && from_file != kSetFile) {
    result = std::filesystem::path(from_file).parent_path() / result;
  }
  return result.lexically_normal().string();
}

std::optional<Node> ReadWithIncludes(const std::string& path, const FileReader& reader,
                                     SourceTexts& sources, DiagnosticList& diagnostics) {
  IncludeReader include_reader{reader, sources, diagnostics, {}, 0};
  return include_reader.Read(path, Span{path, 0, 0, 0});
}

void ApplySets(const std::vector<std::string>& sets, Node& root, SourceTexts& sources,
               DiagnosticList& diagnostics) {
  std::string& source = sources[kSetFile];
  for (size_t index = 0; index < sets.size(); ++index) {
    std::string set = sets[index];
    // One argument is one line of the source text.
    std::replace(set.begin(), set.end(), '\n', ' ');
    absl::StrAppend(&source, set, "\n");
    const int line = static_cast<int>(index) + 1;
    const Span whole{kSetFile, line, 1, static_cast<int>(set.size())};
    const size_t equals = set.find('=');
    const std::vector<std::string> keys = absl::StrSplit(set.substr(0, equals), '.');
    const bool empty_key =
        std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); });
    if (equals == std::string::npos || empty_key || keys.size() > kMaxNesting) {
      diagnostics.Add(DiagnosticCode::kBadSet, whole,
                      absl::StrCat("--set takes key=value, for example mesh.tp=4, not \"",
                                   absl::CHexEscape(set), "\""));
      continue;
    }
    if (keys.front() == "include") {
      diagnostics.Add(DiagnosticCode::kBadSet, whole, "--set cannot include files");
      continue;
    }
    std::optional<Node> value = ReadSetValue(set, equals, line, diagnostics);
    if (value.has_value()) MergeInto(root, Nest(keys, std::move(*value), line, equals));
  }
}

}  // namespace planc
