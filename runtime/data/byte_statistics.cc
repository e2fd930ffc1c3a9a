#include "runtime/data/byte_statistics.h"

#include <cctype>
#include <cmath>
#include <cstddef>

namespace planc {
namespace {

constexpr int64_t kRowBytes = 8;
constexpr int64_t kFewestRows = 64;
constexpr double kZeroColumn = 15.0 / 16;
constexpr double kUsedColumn = 1.0 / 2;

bool IsControl(size_t byte) {
  const bool white = byte >= '\t' && byte <= '\r';
  return (byte < 0x20 && !white && byte != 0x1b) || byte == 0x7f;
}

}  // namespace

ByteStatistics::ByteStatistics(const TokenFile& file) : counts_(kRowBytes) {
  for (std::array<int64_t, 256>& column : counts_) column.fill(0);
  ForEachSample(file, [this](const char* begin, int64_t bytes) {
    for (int64_t row = 0; row < bytes / kRowBytes; ++row) {
      for (int64_t column = 0; column < kRowBytes; ++column) {
        const unsigned char byte = static_cast<unsigned char>(begin[row * kRowBytes + column]);
        ++counts_[static_cast<size_t>(column)][byte];
      }
    }
    rows_ += bytes / kRowBytes;
  });
}

double ByteStatistics::ControlShare() const {
  int64_t controls = 0;
  for (const std::array<int64_t, 256>& column : counts_) {
    for (size_t byte = 0; byte < column.size(); ++byte) {
      if (IsControl(byte)) controls += column[byte];
    }
  }
  return rows_ == 0 ? 0 : static_cast<double>(controls) / static_cast<double>(rows_ * kRowBytes);
}

double ByteStatistics::PrintableShare() const {
  int64_t printable = 0;
  int64_t others = 0;
  for (const std::array<int64_t, 256>& column : counts_) {
    for (size_t byte = 1; byte < column.size(); ++byte) {
      const bool plain = byte < 0x80 && !IsControl(byte);
      (plain ? printable : others) += column[byte];
    }
  }
  const int64_t all = printable + others;
  return all == 0 ? 0 : static_cast<double>(printable) / static_cast<double>(all);
}

double ByteStatistics::ZeroShare(int64_t column) const {
  return static_cast<double>(counts_[static_cast<size_t>(column)][0]) / static_cast<double>(rows_);
}

bool ByteStatistics::Fits(const IntegerLayout& layout, int64_t zeros) const {
  for (int64_t column = 0; column < kRowBytes; ++column) {
    const int64_t place = column % layout.bytes;
    const int64_t significance = layout.big_endian ? layout.bytes - 1 - place : place;
    const bool zero = ZeroShare(column) >= kZeroColumn;
    if (zero != (significance >= layout.bytes - zeros)) return false;
    if (significance == 0 && ZeroShare(column) > kUsedColumn) return false;
  }
  return true;
}

std::optional<IntegerLayout> ByteStatistics::FindIntegers(int64_t width) const {
  if (rows_ < kFewestRows) return std::nullopt;
  for (const int64_t bytes : {2, 4, 8}) {
    for (const bool big_endian : {false, true}) {
      const IntegerLayout layout{bytes, big_endian};
      const int64_t fewest = width > 1 && bytes > width ? bytes / 2 : 1;
      for (int64_t zeros = fewest; zeros < bytes; ++zeros) {
        if (Fits(layout, zeros)) return layout;
      }
    }
  }
  return std::nullopt;
}

double ByteStatistics::Entropy(int parity) const {
  double entropy = 0;
  const double all = static_cast<double>(rows_ * kRowBytes / 2);
  for (size_t byte = 0; byte < 256; ++byte) {
    int64_t count = 0;
    for (size_t column = static_cast<size_t>(parity); column < kRowBytes; column += 2) {
      count += counts_[column][byte];
    }
    if (count == 0) continue;
    const double share = static_cast<double>(count) / all;
    entropy -= share * std::log2(share);
  }
  return entropy;
}

}  // namespace planc
