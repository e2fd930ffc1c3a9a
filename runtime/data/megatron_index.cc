#include "runtime/data/megatron_index.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr int64_t kHeaderBytes = 34;
constexpr int64_t kVersion = 1;

// Megatron's type codes; the floating-point ones hold no tokens.
std::optional<TokenCode> CodeOf(uint8_t code) {
  switch (code) {
    case 1:
      return TokenCode::kU8;
    case 2:
      return TokenCode::kI8;
    case 3:
      return TokenCode::kI16;
    case 4:
      return TokenCode::kI32;
    case 5:
      return TokenCode::kI64;
    case 8:
      return TokenCode::kU16;
    default:
      return std::nullopt;
  }
}

absl::Status IndexError(const std::string& name, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", reason));
}

}  // namespace

absl::StatusOr<MegatronIndex> ReadMegatronIndex(const MappedFile& file, const std::string& name) {
  const char* const data = file.data();
  if (file.size() < kHeaderBytes || std::memcmp(data, kMagic, sizeof(kMagic)) != 0) {
    return IndexError(name, "not a Megatron index (it does not start with MMIDIDX)");
  }
  const int64_t version = LoadUnaligned<int64_t>(data + 9);
  if (version != kVersion) {
    return IndexError(name, absl::StrCat("index version ", version, "; known is ", kVersion));
  }
  const uint8_t type = static_cast<uint8_t>(data[17]);
  const std::optional<TokenCode> code = CodeOf(type);
  if (!code.has_value()) {
    return IndexError(name, absl::StrCat("type code ", type, " is not one of integers"));
  }
  const int64_t sequences = LoadUnaligned<int64_t>(data + 18);
  const int64_t documents = LoadUnaligned<int64_t>(data + 26);
  const int64_t rest = file.size() - kHeaderBytes;
  const bool fits = sequences >= 0 && documents >= 0 && sequences <= rest / 12 &&
                    documents <= (rest - sequences * 12) / 8;
  if (!fits) {
    return IndexError(name, absl::StrCat("too short for ", Counted(sequences, "sequence"), " and ",
                                         Counted(documents, "document entry"), ": ",
                                         Counted(file.size(), "byte")));
  }
  const char* const lengths = data + kHeaderBytes;
  const char* const offsets = lengths + sequences * 4;
  const int64_t width = TokenBytes(*code);
  int64_t tokens = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    const int32_t length = LoadUnaligned<int32_t>(lengths + i * 4);
    const int64_t offset = LoadUnaligned<int64_t>(offsets + i * 8);
    if (length < 0 || offset != tokens * width) {
      return IndexError(name, absl::StrCat("sequence ", i, " has length ", length, " at byte ",
                                           offset, "; expected at byte ", tokens * width));
    }
    tokens += length;
  }
  return MegatronIndex{*code, tokens, sequences};
}

}  // namespace planc
