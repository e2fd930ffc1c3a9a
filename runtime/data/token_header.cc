#include "runtime/data/token_header.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "schemas/status.h"

namespace planc {
namespace {

using MaybeHeader = absl::StatusOr<std::optional<TokenHeader>>;

constexpr int64_t kLlmcHeaderBytes = 256 * 4;
constexpr std::string_view kNumpyMagic = "\x93NUMPY";

struct LlmcRow {
  int32_t magic;
  int32_t version;
  TokenCode code;
  const char* type;
};

constexpr LlmcRow kLlmc[] = {
    {20240520, 1, TokenCode::kU16, "uint16"},
    {20240801, 7, TokenCode::kU32, "uint32"},
};

struct NumpyRow {
  std::string_view descr;
  TokenCode code;
  const char* type;
};

constexpr NumpyRow kNumpy[] = {
    {"|u1", TokenCode::kU8, "uint8"},   {"|i1", TokenCode::kI8, "int8"},
    {"<u2", TokenCode::kU16, "uint16"}, {"<i2", TokenCode::kI16, "int16"},
    {"<u4", TokenCode::kU32, "uint32"}, {"<i4", TokenCode::kI32, "int32"},
    {"<i8", TokenCode::kI64, "int64"},  {"<u8", TokenCode::kI64, "uint64"},
};

absl::Status HeaderError(const std::string& path, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", reason));
}

absl::Status CheckSize(const MappedFile& file, const std::string& path, const TokenHeader& header) {
  const int64_t width = TokenBytes(header.code);
  const int64_t rest = file.size() - header.bytes;
  if (rest % width == 0 && rest / width == header.tokens) return absl::OkStatus();
  return HeaderError(
      path, absl::StrCat("its ", header.name, " header says ", header.tokens, " ", header.type,
                         " tokens, but ", rest, " bytes follow it instead of ",
                         header.tokens * width, ": was it written to its end?"));
}

MaybeHeader ReadLlmc(const MappedFile& file, const std::string& path) {
  if (file.size() < 12) return std::nullopt;
  const int32_t magic = LoadUnaligned<int32_t>(file.data());
  const auto* const row = std::find_if(std::begin(kLlmc), std::end(kLlmc),
                                       [magic](const LlmcRow& r) { return r.magic == magic; });
  if (row == std::end(kLlmc)) return std::nullopt;
  if (file.size() < kLlmcHeaderBytes) {
    return HeaderError(path, absl::StrCat("begins as a token file of llm.c, but has ", file.size(),
                                          " bytes; the header alone is ", kLlmcHeaderBytes));
  }
  const int32_t version = LoadUnaligned<int32_t>(file.data() + 4);
  if (version != row->version) {
    return HeaderError(path, absl::StrCat("is a token file of llm.c of version ", version,
                                          "; known is ", row->version, " for ", magic));
  }
  TokenHeader header{"llm.c", row->type, row->code, kLlmcHeaderBytes,
                     LoadUnaligned<int32_t>(file.data() + 8)};
  // The count is an int32: longer files hold it modulo 2^32.
  const int64_t held = (file.size() - kLlmcHeaderBytes) / TokenBytes(row->code);
  if (held > INT32_MAX && static_cast<int32_t>(held) == header.tokens) header.tokens = held;
  PLANC_RETURN_IF_ERROR(CheckSize(file, path, header));
  return header;
}

// What stands after `'key':` in the header's Python dictionary, without blanks.
std::string_view ValueAfter(std::string_view dictionary, std::string_view key) {
  const size_t at = dictionary.find(absl::StrCat("'", std::string(key), "':"));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = dictionary.substr(at + key.size() + 3);
  const size_t begin = rest.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
}

MaybeHeader ParseNumpy(std::string_view dictionary, const std::string& path) {
  std::string_view descr = ValueAfter(dictionary, "descr");
  const size_t quote = descr.find('\'', 1);
  if (descr.empty() || descr[0] != '\'' || quote == std::string_view::npos) {
    return HeaderError(path, "is a NumPy file of records, not of tokens; save one column of it");
  }
  descr = descr.substr(1, quote - 1);
  const auto* const row = std::find_if(std::begin(kNumpy), std::end(kNumpy),
                                       [&](const NumpyRow& r) { return r.descr == descr; });
  if (row == std::end(kNumpy)) {
    const bool swapped = descr[0] == '>';
    return HeaderError(
        path,
        absl::StrCat("is a NumPy file of dtype ", std::string(descr),
                     swapped ? ", most significant byte first; save it as little-endian, with "
                               "Python: `numpy.save('tokens.npy', numpy.load('"
                             : "; tokens are integers: `numpy.save('tokens.npy', numpy.load('",
                     path, "').astype('<u4'))`"));
  }
  std::string_view shape = ValueAfter(dictionary, "shape");
  const size_t end = shape.find(')');
  shape = end == std::string_view::npos ? std::string_view() : shape.substr(0, end);
  TokenHeader header{"NumPy", row->type, row->code, 0, 0};
  const size_t comma = shape.find(',');
  const bool one = comma != std::string_view::npos &&
                   shape.find_first_not_of(' ', comma + 1) == std::string_view::npos;
  if (!one || !absl::SimpleAtoi(std::string(shape.substr(1, comma - 1)), &header.tokens) ||
      header.tokens < 0) {
    return HeaderError(path, absl::StrCat("is a NumPy file of shape ", std::string(shape),
                                          "); tokens have one dimension: `numpy.save('tokens.npy', "
                                          "numpy.load('",
                                          path, "').ravel())`"));
  }
  return header;
}

MaybeHeader ReadNumpy(const MappedFile& file, const std::string& path) {
  const std::string_view bytes(file.data(), static_cast<size_t>(file.size()));
  if (bytes.substr(0, kNumpyMagic.size()) != kNumpyMagic) return std::nullopt;
  if (bytes.size() < 12) return HeaderError(path, "is a NumPy file that ends in its header");
  const int version = bytes[6];
  if (version < 1 || version > 3) {
    return HeaderError(
        path, absl::StrCat("is a NumPy file of version ", version, "; known are 1, 2 and 3"));
  }
  const size_t begin = version == 1 ? 10 : 12;
  const size_t length = version == 1 ? LoadUnaligned<uint16_t>(file.data() + 8)
                                     : LoadUnaligned<uint32_t>(file.data() + 8);
  if (length > bytes.size() - begin) {
    return HeaderError(path, "is a NumPy file that ends in its header");
  }
  PLANC_ASSIGN_OR_RETURN(std::optional<TokenHeader> header,
                         ParseNumpy(bytes.substr(begin, length), path));
  header->bytes = static_cast<int64_t>(begin + length);
  PLANC_RETURN_IF_ERROR(CheckSize(file, path, *header));
  return header;
}

}  // namespace

MaybeHeader ReadTokenHeader(const MappedFile& file, const std::string& path) {
  PLANC_ASSIGN_OR_RETURN(std::optional<TokenHeader> header, ReadLlmc(file, path));
  if (header.has_value()) return header;
  return ReadNumpy(file, path);
}

}  // namespace planc
