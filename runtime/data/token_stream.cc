#include "runtime/data/token_stream.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/data/file_kind.h"
#include "runtime/data/megatron_index.h"
#include "runtime/data/token_header.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
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

// Refuses what is recognized as another kind of file; text is not refused as bytes.
absl::Status CheckKind(const TokenFile& file, const std::string& expected) {
  const std::optional<FileKind> kind = RecognizeFile(file.file, file.name);
  if (!kind.has_value() || (kind->is_text && file.code == TokenCode::kU8)) return absl::OkStatus();
  return absl::InvalidArgumentError(RefusalOfKind(file.name, *kind, expected));
}

// The file's tokens are all that follows its header.
absl::Status CountTokens(TokenFile* file) {
  const int64_t width = TokenBytes(file->code);
  const int64_t bytes = file->file.size() - file->header_bytes;
  if (bytes % width != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file->name, ": ", bytes, " bytes are not a whole number of ", width, "-byte tokens"));
  }
  file->tokens = bytes / width;
  return absl::OkStatus();
}

absl::StatusOr<TokenFile> OpenBytes(const std::string& path) {
  TokenFile file;
  file.name = path;
  PLANC_ASSIGN_OR_RETURN(file.file, MappedFile::Open(path));
  PLANC_RETURN_IF_ERROR(CheckKind(file, "text"));
  PLANC_ASSIGN_OR_RETURN(const auto header, ReadTokenHeader(file.file, path));
  if (header.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a token file with a header of ",
                                                   header->name,
                                                   ", not text; write `data.format: tokens`"));
  }
  PLANC_RETURN_IF_ERROR(CountTokens(&file));
  return file;
}

// The width that the index beside a Megatron .bin file tells, or nothing.
std::optional<MegatronIndex> IndexBeside(const std::string& path) {
  if (!absl::EndsWith(path, ".bin")) return std::nullopt;
  const std::string name = absl::StrCat(absl::StripSuffix(path, ".bin"), ".idx");
  const absl::StatusOr<MappedFile> file = MappedFile::Open(name);
  if (!file.ok()) return std::nullopt;
  const absl::StatusOr<MegatronIndex> index = ReadMegatronIndex(*file, name);
  return index.ok() ? std::optional(*index) : std::nullopt;
}

absl::StatusOr<TokenFile> OpenTokens(const std::string& path, int64_t token_bytes) {
  if (token_bytes != 2 && token_bytes != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.token_bytes is ", token_bytes, "; valid are 2 and 4"));
  }
  TokenFile file;
  file.name = path;
  file.code = token_bytes == 2 ? TokenCode::kU16 : TokenCode::kU32;
  PLANC_ASSIGN_OR_RETURN(file.file, MappedFile::Open(path));
  PLANC_RETURN_IF_ERROR(CheckKind(file, "token numbers"));
  PLANC_ASSIGN_OR_RETURN(const auto header, ReadTokenHeader(file.file, path));
  if (header.has_value()) {
    // A job without the key has 2, which therefore contradicts no header.
    if (token_bytes > 2 && TokenBytes(header->code) < token_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": its ", header->name, " header says ",
                                                     header->type, ", but data.token_bytes is ",
                                                     token_bytes, ": leave the key out"));
    }
    file.code = header->code;
    file.header_bytes = header->bytes;
    file.described = true;
  } else if (const auto index = IndexBeside(path); index.has_value()) {
    if (TokenBytes(index->code) != token_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is the data of a Megatron pair, whose index says ",
                       TokenBytes(index->code), " bytes a token, but data.token_bytes is ",
                       token_bytes, "; write `data.format: megatron` and `",
                       std::string(absl::StripSuffix(path, ".bin")), "`"));
    }
    file.described = true;
  }
  PLANC_RETURN_IF_ERROR(CountTokens(&file));
  return file;
}

absl::StatusOr<TokenFile> OpenMegatron(const std::string& path) {
  const std::string index_path = absl::StrCat(path, ".idx");
  const absl::StatusOr<MappedFile> index_file = MappedFile::Open(index_path);
  if (!index_file.ok()) {
    std::string message(index_file.status().message());
    for (const char* const suffix : {".bin", ".idx"}) {
      if (!absl::EndsWith(path, suffix)) continue;
      absl::StrAppend(&message, "; format megatron names a pair without its suffix: write `",
                      std::string(absl::StripSuffix(path, suffix)), "`");
    }
    return absl::Status(index_file.status().code(), message);
  }
  PLANC_ASSIGN_OR_RETURN(const MegatronIndex index, ReadMegatronIndex(*index_file, index_path));
  TokenFile file;
  file.name = absl::StrCat(path, ".bin");
  file.code = index.code;
  file.described = true;
  PLANC_ASSIGN_OR_RETURN(file.file, MappedFile::Open(file.name));
  PLANC_RETURN_IF_ERROR(CountTokens(&file));
  if (file.tokens != index.tokens) {
    return absl::InvalidArgumentError(absl::StrCat(file.name, ": holds ",
                                                   Counted(file.tokens, "token"),
                                                   ", but its index lists ", index.tokens));
  }
  return file;
}

absl::StatusOr<TokenFile> OpenFile(const std::string& path, proto::DataFormat format,
                                   int64_t token_bytes) {
  switch (format) {
    case proto::BYTES:
      return OpenBytes(path);
    case proto::MEGATRON:
      return OpenMegatron(path);
    case proto::TOKENS:
      return OpenTokens(path, token_bytes);
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

std::string OutsideText(const TokenFile& file, int64_t token, int64_t vocab) {
  return WithTokenType(file.code, [&](auto zero) {
    using T = decltype(zero);
    const T value = LoadUnaligned<T>(file.data() + token * static_cast<int64_t>(sizeof(T)));
    return absl::StrCat(file.name, ": token ", token, " is ", static_cast<int64_t>(value),
                        ", but model.vocab is ", vocab);
  });
}

}  // namespace

std::string VocabularyDefect(const TokenFile& file, int64_t vocab) {
  const int64_t bad = WithTokenType(file.code, [&](auto zero) {
    return FirstOutside<decltype(zero)>(file.data(), file.tokens, vocab);
  });
  return bad < 0 ? "" : OutsideText(file, bad, vocab);
}

absl::StatusOr<std::unique_ptr<TokenStream>> TokenStream::Open(
    const std::vector<std::string>& paths, proto::DataFormat format, int64_t token_bytes,
    const std::string& directory) {
  auto stream = std::make_unique<TokenStream>();
  std::vector<absl::Status> defects;
  for (const std::string& path : paths) {
    absl::StatusOr<TokenFile> file = OpenFile(PathIn(directory, path), format, token_bytes);
    if (!file.ok()) {
      defects.push_back(file.status());
      continue;
    }
    file->first = stream->tokens_;
    stream->tokens_ += file->tokens;
    stream->files_.push_back(*std::move(file));
  }
  if (!defects.empty()) return JoinedErrors(defects);
  return stream;
}

void TokenStream::KeepFirst(int64_t tokens) {
  files_.back().tokens -= tokens_ - tokens;
  tokens_ = tokens;
}

std::vector<TokenFile>::const_iterator TokenStream::FileOf(int64_t token) const {
  // The last one that begins at or before it.
  return std::upper_bound(files_.begin(), files_.end(), token,
                          [](int64_t at, const TokenFile& f) { return at < f.first; }) -
         1;
}

void TokenStream::Read(int64_t first, int64_t count, int32_t* out) const {
  auto file = FileOf(first);
  while (count > 0) {
    const int64_t begin = first - file->first;
    const int64_t take = std::min(count, file->tokens - begin);
    WithTokenType(file->code, [&](auto zero) {
      using T = decltype(zero);
      const char* const data = file->data() + begin * static_cast<int64_t>(sizeof(T));
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

absl::Status TokenStream::ReadChecked(int64_t first, int64_t count, int64_t vocab,
                                      int32_t* out) const {
  Read(first, count, out);
  for (auto file = FileOf(first); file != files_.end() && file->first < first + count; ++file) {
    PLANC_RETURN_IF_ERROR(file->file.CheckNotCut(file->name));
  }
  const auto limit = static_cast<uint32_t>(std::min<int64_t>(vocab, int64_t{1} << 31));
  // Negative ones are large. Without an exit, so that the compiler can vectorize it.
  uint32_t any = 0;
  for (int64_t i = 0; i < count; ++i) {
    any |= static_cast<uint32_t>(static_cast<uint32_t>(out[i]) >= limit);
  }
  for (int64_t i = 0; i < count && any != 0; ++i) {
    if (static_cast<uint32_t>(out[i]) < limit) continue;
    return absl::DataLossError(
        OutsideText(*FileOf(first + i), first + i - FileOf(first + i)->first, vocab));
  }
  return absl::OkStatus();
}

}  // namespace planc
