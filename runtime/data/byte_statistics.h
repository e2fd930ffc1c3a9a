#ifndef PLANC_RUNTIME_DATA_BYTE_STATISTICS_H_
#define PLANC_RUNTIME_DATA_BYTE_STATISTICS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/data/token_stream.h"

namespace planc {

// Calls `visit(begin, bytes)` for the parts of the file's tokens that statistics look at: all of a
// file up to 128 MiB, else as much in blocks spread over it evenly. Each part but the last is a
// multiple of 8 bytes, and begins at one.
template <typename Visitor>
void ForEachSample(const TokenFile& file, Visitor visit) {
  constexpr int64_t kBlock = 32 * 1024;
  constexpr int64_t kBlocks = 4096;
  const int64_t bytes = file.tokens * TokenBytes(file.code);
  const int64_t stride = std::max<int64_t>(1, (bytes / kBlock + kBlocks - 1) / kBlocks);
  for (int64_t begin = 0; begin < bytes; begin += kBlock * stride) {
    visit(file.data() + begin, std::min(kBlock, bytes - begin));
  }
}

// How integers are stored.
struct IntegerLayout {
  int64_t bytes = 0;
  bool big_endian = false;
};

// How often each value stands at each of eight successive bytes.
class ByteStatistics {
 public:
  explicit ByteStatistics(const TokenFile& file);

  int64_t rows() const { return rows_; }  // groups of eight bytes
  // Share of bytes that no text has: control characters other than white space and escape.
  double ControlShare() const;
  // Share of printable ASCII among the bytes that are not zero.
  double PrintableShare() const;
  // Integers whose most significant bytes, and only those, are nearly always zero: which width
  // and order they have. A column of eight counts as zero where 15 of 16 rows are, and the least
  // significant bytes may be zero in half of the rows at most. Needs 64 rows: tokens of `width`
  // bytes, each equally likely at each place of a row, look like wider ones with a chance below
  // 1e-7 (60 of 64 against 32 of 64 rows are 5.5 standard deviations apart, and every pair of
  // columns has to be). For tokens wider than a byte, wider integers have a zero upper half.
  // Nothing when no layout fits.
  std::optional<IntegerLayout> FindIntegers(int64_t width) const;
  // Entropy in bits of the bytes at even or odd places: the low and the high byte of 16-bit tokens.
  double Entropy(int parity) const;

 private:
  // Whether the columns that are zero are the `zeros` most significant bytes of each element.
  bool Fits(const IntegerLayout& layout, int64_t zeros) const;
  double ZeroShare(int64_t column) const;

  std::vector<std::array<int64_t, 256>> counts_;  // [8]
  int64_t rows_ = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_BYTE_STATISTICS_H_
