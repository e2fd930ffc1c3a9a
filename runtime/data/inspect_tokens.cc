#include "runtime/data/inspect_tokens.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/data/byte_statistics.h"

namespace planc {
namespace {

// Fewest tokens and bytes about which anything is said, so that tiny files pass.
constexpr int64_t kFewestTokens = 256;
// Entropies are estimated from so many tokens: the estimate of the entropy of 256 values is then
// too low by 255 / (2 n ln 2) = 0.05 bits, far below the one bit that is looked for.
constexpr int64_t kFewestForEntropy = 4096;
constexpr double kSwappedBits = 1;
// 29 of 256 equally likely bytes are control characters; text has next to none.
constexpr double kBinaryControls = 0.02;
constexpr double kNearlyAll = 0.99;
constexpr int64_t kLongTail = 65536;

std::string TypeName(const IntegerLayout& layout) {
  return absl::StrCat(layout.big_endian ? "big-endian " : "", "uint", layout.bytes * 8);
}

std::string NumpyType(const IntegerLayout& layout) {
  return absl::StrCat(layout.big_endian ? ">u" : "<u", layout.bytes);
}

// How to read tokens that are stored as `layout`.
std::string LayoutAdvice(const std::string& path, const IntegerLayout& layout) {
  const bool readable = !layout.big_endian && (layout.bytes == 2 || layout.bytes == 4);
  if (readable) {
    return absl::StrCat("write `data.format: tokens` and `data.token_bytes: ", layout.bytes, "`");
  }
  return absl::StrCat("convert it, with Python: `numpy.fromfile('", path, "', '", NumpyType(layout),
                      "').astype('<u4').tofile('tokens.bin')`, and write `data.token_bytes: 4`");
}

template <typename T>
T ByteSwapped(T value) {
  T swapped = 0;
  for (size_t i = 0; i < sizeof(T); ++i) swapped = (swapped << 8) | ((value >> (8 * i)) & 0xff);
  return swapped;
}

// Share of the looked-at tokens below `vocab`, read as T, swapped or not.
template <typename T>
double ShareBelow(const TokenFile& file, int64_t vocab, bool swapped) {
  int64_t below = 0;
  int64_t all = 0;
  ForEachSample(file, [&](const char* begin, int64_t bytes) {
    const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
      T value = LoadUnaligned<T>(begin + i * static_cast<int64_t>(sizeof(T)));
      if (swapped) value = ByteSwapped(value);
      below += static_cast<uint64_t>(value) < static_cast<uint64_t>(vocab) ? 1 : 0;
    }
    all += count;
  });
  return all == 0 ? 0 : static_cast<double>(below) / static_cast<double>(all);
}

// What the tokens of a file without a header would rather be, after one was not below `vocab`.
std::string Hint(const TokenFile& file, int64_t vocab) {
  const int64_t width = TokenBytes(file.code);
  const auto all_below = [](double share) { return share == 1.0; };
  const auto hint = [&](const IntegerLayout& layout) {
    return absl::StrCat("; as ", TypeName(layout), " all would be below it: if they are that, ",
                        LayoutAdvice(file.name, layout));
  };
  if (file.tokens < kFewestTokens / 4) return "";
  if (width == 4 && all_below(ShareBelow<uint16_t>(file, vocab, false))) return hint({2, false});
  if (width == 2 && all_below(ShareBelow<uint32_t>(file, vocab, false))) return hint({4, false});
  if (width == 2 && all_below(ShareBelow<uint16_t>(file, vocab, true))) return hint({2, true});
  if (width == 4 && all_below(ShareBelow<uint32_t>(file, vocab, true))) return hint({4, true});
  if (width > 1 && vocab <= 256 && all_below(ShareBelow<uint8_t>(file, vocab, false))) {
    return "; as single bytes all would be below it: if they are that, write `data.format: bytes`";
  }
  return "";
}

// What the bytes of a file without a header say about how it is read; empty when nothing.
std::string MisreadTokens(const TokenFile& file, const ByteStatistics& statistics) {
  const int64_t width = TokenBytes(file.code);
  const IntegerLayout read{width, false};
  const std::optional<IntegerLayout> found = statistics.FindIntegers(width);
  if (found.has_value() && (found->bytes != width || found->big_endian)) {
    return absl::StrCat("holds ", TypeName(*found), " numbers, read as ", TypeName(read),
                        ": by place, the same bytes of every ", found->bytes,
                        " are zero throughout; ", LayoutAdvice(file.name, *found), ". If it is ",
                        TypeName(read),
                        " all the same, save it with a header, as "
                        "numpy.save does");
  }
  if (file.tokens * width >= kFewestTokens && statistics.ControlShare() == 0) {
    return absl::StrCat("is text, read as ", TypeName(read),
                        " tokens: it has no byte that text has not; write `data.format: bytes`, or "
                        "tokenize it: `planc tokenize ",
                        file.name, " --tokenizer=FILE -o OUT`");
  }
  const double low = statistics.Entropy(0);
  const double high = statistics.Entropy(1);
  if (width == 2 && file.tokens >= kFewestForEntropy && high > low + kSwappedBits) {
    return absl::StrFormat(
        "holds big-endian uint16 numbers, read as uint16: the high bytes, with %.1f bits of "
        "entropy, are more varied than the low ones, with %.1f; %s",
        high, low, LayoutAdvice(file.name, {2, true}));
  }
  return "";
}

// The same for a file of text.
std::string MisreadText(const TokenFile& file, const ByteStatistics& statistics) {
  const std::optional<IntegerLayout> found = statistics.FindIntegers(1);
  if (!found.has_value()) return "";
  if (found->bytes == 2 && statistics.PrintableShare() > kNearlyAll) {
    return absl::StrCat("is UTF-16 text: every second byte is zero; convert it: `iconv -f UTF-16",
                        found->big_endian ? "BE" : "LE", " -t UTF-8 ", file.name, " > text.txt`");
  }
  return absl::StrCat("holds ", TypeName(*found),
                      " numbers, read as bytes: by place, the same bytes of every ", found->bytes,
                      " are zero throughout; ", LayoutAdvice(file.name, *found));
}

int64_t ValueAt(const TokenFile& file, int64_t index) {
  return WithTokenType(file.code, [&](auto zero) {
    using T = decltype(zero);
    return static_cast<int64_t>(
        LoadUnaligned<T>(file.data() + index * static_cast<int64_t>(sizeof(T))));
  });
}

// Share of the looked-at tokens that are `value`.
double ShareOf(const TokenFile& file, int64_t value) {
  return WithTokenType(file.code, [&](auto zero) {
    using T = decltype(zero);
    int64_t same = 0;
    int64_t all = 0;
    ForEachSample(file, [&](const char* begin, int64_t bytes) {
      const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        same +=
            LoadUnaligned<T>(begin + i * static_cast<int64_t>(sizeof(T))) == static_cast<T>(value)
                ? 1
                : 0;
      }
      all += count;
    });
    return static_cast<double>(same) / static_cast<double>(all);
  });
}

// Tokens at the end of the file that are all the same.
int64_t TailOf(const TokenFile& file) {
  const int64_t last = ValueAt(file, file.tokens - 1);
  int64_t tail = 1;
  while (tail < file.tokens && ValueAt(file, file.tokens - 1 - tail) == last) ++tail;
  return tail;
}

// Nothing, or hardly anything, but one token.
void InspectVariety(const TokenFile& file, const std::string& place, DataFindings* findings) {
  if (file.tokens < kFewestTokens) return;
  // A token that makes up 99% of the file is missed by all three with a chance of 1e-6.
  for (const int64_t at : {file.tokens / 5, file.tokens / 2, file.tokens * 4 / 5}) {
    const int64_t value = ValueAt(file, at);
    const double share = ShareOf(file, value);
    if (share < kNearlyAll) continue;
    if (share == 1.0 && value == 0) {
      findings->errors.push_back(
          absl::StrCat(place, "all ", file.tokens, " tokens are 0: was the file written?"));
    } else {
      findings->warnings.push_back(absl::StrFormat("%s%s of its %d tokens are %d", place,
                                                   share == 1.0 ? "all" : "more than 99%",
                                                   file.tokens, value));
    }
    return;
  }
  const int64_t tail = TailOf(file);
  if (tail < kLongTail) return;
  findings->warnings.push_back(absl::StrCat(place, "the last ", tail, " of its ", file.tokens,
                                            " tokens are all ", ValueAt(file, file.tokens - 1),
                                            ": was the file written to its end?"));
}

void InspectFile(const TokenFile& file, proto::DataFormat format, int64_t vocab,
                 const std::string& key, DataFindings* findings) {
  if (file.tokens == 0) return;
  const std::string place = absl::StrCat(key, ": ", file.name, ": ");
  std::string misread;
  if (!file.described) {
    const ByteStatistics statistics(file);
    misread =
        format == proto::BYTES ? MisreadText(file, statistics) : MisreadTokens(file, statistics);
    const double controls = statistics.ControlShare();
    if (misread.empty() && format == proto::BYTES && controls >= kBinaryControls &&
        file.tokens >= kFewestTokens) {
      findings->warnings.push_back(absl::StrFormat(
          "%sis not text: %.0f%% of its bytes are control characters; if it holds token numbers, "
          "write `data.format: tokens`",
          place, controls * 100));
    }
  }
  if (!misread.empty()) {
    findings->errors.push_back(place + misread);
    return;
  }
  std::string outside = VocabularyDefect(file, vocab);
  if (!outside.empty()) {
    if (!file.described) absl::StrAppend(&outside, Hint(file, vocab));
    findings->errors.push_back(absl::StrCat(key, ": ", outside));
    return;
  }
  InspectVariety(file, place, findings);
}

}  // namespace

absl::Status DataFindings::ToStatus() const {
  if (errors.empty()) return absl::OkStatus();
  const absl::Status status = absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return fault.has_value() ? WithFault(status, *fault) : status;
}

void InspectTokens(const TokenStream& stream, proto::DataFormat format, int64_t vocab,
                   const std::string& key, DataFindings* findings) {
  for (const TokenFile& file : stream.files()) InspectFile(file, format, vocab, key, findings);
}

}  // namespace planc
