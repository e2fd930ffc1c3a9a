#include "runtime/data/token_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/data/megatron_index.h"
#include "schemas/status.h"

namespace planc {
namespace {

template <typename T>
bool FitsInt32(T value) {
  if constexpr (sizeof(T) < sizeof(int32_t) || std::is_same_v<T, int32_t>) {
    return true;
  } else {
    return value >= T{0} && value <= T{std::numeric_limits<int32_t>::max()};
  }
}

absl::StatusOr<TokenFile> OpenFlat(const std::string& path, TokenCode code) {
  TokenFile file;
  file.name = path;
  file.code = code;
  PLANC_ASSIGN_OR_RETURN(file.file, MappedFile::Open(path));
  const int64_t width = TokenBytes(code);
  if (file.file.size() % width != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", file.file.size(), " bytes are not a whole number of ", width, "-byte tokens"));
  }
  file.tokens = file.file.size() / width;
  return file;
}

absl::StatusOr<TokenFile> OpenMegatron(const std::string& path) {
  const std::string index_path = absl::StrCat(path, ".idx");
  PLANC_ASSIGN_OR_RETURN(const MappedFile index_file, MappedFile::Open(index_path));
  PLANC_ASSIGN_OR_RETURN(const MegatronIndex index, ReadMegatronIndex(index_file, index_path));
  PLANC_ASSIGN_OR_RETURN(TokenFile file, OpenFlat(absl::StrCat(path, ".bin"), index.code));
  if (file.tokens != index.tokens) {
    return absl::InvalidArgumentError(absl::StrCat(file.name, ": holds ", file.tokens,
                                                   " tokens, but its index lists ", index.tokens));
  }
  return file;
}

absl::StatusOr<TokenFile> OpenFile(const std::string& path, proto::DataFormat format,
                                   int64_t token_bytes) {
  switch (format) {
    case proto::BYTES:
      return OpenFlat(path, TokenCode::kU8);
    case proto::MEGATRON:
      return OpenMegatron(path);
    case proto::TOKENS:
      if (token_bytes == 2) return OpenFlat(path, TokenCode::kU16);
      if (token_bytes == 4) return OpenFlat(path, TokenCode::kU32);
      return absl::InvalidArgumentError(
          absl::StrCat("data.token_bytes is ", token_bytes, "; valid are 2 and 4"));
    default:
      return absl::InvalidArgumentError("data.format is not set");
  }
}

// Index of the first token outside [0, vocab), or -1.
template <typename T>
int64_t FirstOutside(const char* data, int64_t count, int64_t vocab) {
  const auto outside = [vocab](T value) {
    return static_cast<int64_t>(value) < 0 || static_cast<int64_t>(value) >= vocab;
  };
  // Whole blocks without an exit, so that the compiler can vectorize them.
  constexpr int64_t kBlock = 4096;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    int any = 0;
    for (int64_t i = begin; i < end; ++i) {
      any |=
          static_cast<int>(outside(LoadUnaligned<T>(data + i * static_cast<int64_t>(sizeof(T)))));
    }
    for (int64_t i = begin; any != 0 && i < end; ++i) {
      if (outside(LoadUnaligned<T>(data + i * static_cast<int64_t>(sizeof(T))))) return i;
    }
  }
  return -1;
}

// A sentence about the first bad token of `file`, empty when there is none.
std::string VocabularyDefect(const TokenFile& file, int64_t vocab) {
  return WithTokenType(file.code, [&](auto zero) -> std::string {
    using T = decltype(zero);
    const int64_t bad = FirstOutside<T>(file.file.data(), file.tokens, vocab);
    if (bad < 0) return "";
    const T value = LoadUnaligned<T>(file.file.data() + bad * static_cast<int64_t>(sizeof(T)));
    return absl::StrCat(file.name, ": token ", bad, " is ", static_cast<int64_t>(value),
                        ", but model.vocab is ", vocab);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenStream>> TokenStream::Open(
    const std::vector<std::string>& paths, proto::DataFormat format, int64_t token_bytes,
    const std::string& directory) {
  auto stream = std::make_unique<TokenStream>();
  std::vector<std::string> defects;
  for (const std::string& path : paths) {
    absl::StatusOr<TokenFile> file = OpenFile(PathIn(directory, path), format, token_bytes);
    if (!file.ok()) {
      defects.push_back(std::string(file.status().message()));
      continue;
    }
    file->first = stream->tokens_;
    stream->tokens_ += file->tokens;
    stream->files_.push_back(*std::move(file));
  }
  if (!defects.empty()) return absl::InvalidArgumentError(absl::StrJoin(defects, "\n"));
  return stream;
}

void TokenStream::Read(int64_t first, int64_t count, int32_t* out) const {
  // The last file that begins at or before `first`; empty files in between hold nothing.
  auto file = std::upper_bound(files_.begin(), files_.end(), first,
                               [](int64_t at, const TokenFile& f) { return at < f.first; }) -
              1;
  while (count > 0) {
    const int64_t begin = first - file->first;
    const int64_t take = std::min(count, file->tokens - begin);
    WithTokenType(file->code, [&](auto zero) {
      using T = decltype(zero);
      const char* const data = file->file.data() + begin * static_cast<int64_t>(sizeof(T));
      for (int64_t i = 0; i < take; ++i) {
        const T value = LoadUnaligned<T>(data + i * static_cast<int64_t>(sizeof(T)));
        out[i] = FitsInt32(value) ? static_cast<int32_t>(value) : -1;
      }
    });
    first += take;
    count -= take;
    out += take;
    ++file;
  }
}

absl::Status TokenStream::CheckVocabulary(int64_t vocab) const {
  std::vector<std::string> defects;
  for (const TokenFile& file : files_) {
    std::string defect = VocabularyDefect(file, vocab);
    if (!defect.empty()) defects.push_back(std::move(defect));
  }
  if (!defects.empty()) return absl::InvalidArgumentError(absl::StrJoin(defects, "\n"));
  return absl::OkStatus();
}

}  // namespace planc
