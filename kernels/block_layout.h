#ifndef PLANC_KERNELS_BLOCK_LAYOUT_H_
#define PLANC_KERNELS_BLOCK_LAYOUT_H_

#include <cstdint>

namespace planc::host {

// Right operands of block products are stored in panels of this many columns: panel[depth][16],
// one panel after another. Sixteen floats are two AVX2 vectors or one of AVX-512, so that the
// layout, and with it every workspace size, is the same on every machine.
constexpr int64_t kPanelWidth = 16;

// Left operands are cut into blocks between groups of this many rows: a multiple of the rows that
// one block product keeps in registers on any machine (6 with AVX2, 12 with AVX-512).
constexpr int64_t kRowGroup = 12;

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Bytes of `count` floats, rounded up so that the next block starts on a cache line.
constexpr int64_t BlockBytes(int64_t count) { return RoundUp(count * 4, 64); }

// Hands out consecutive blocks of one workspace, and counts their bytes. With a null workspace it
// only counts.
class BlockCursor {
 public:
  explicit BlockCursor(void* workspace) : workspace_(static_cast<char*>(workspace)) {}

  float* Take(int64_t count) {
    char* block = workspace_ == nullptr ? nullptr : workspace_ + bytes_;
    bytes_ += BlockBytes(count);
    return reinterpret_cast<float*>(block);
  }

  int64_t bytes() const { return bytes_; }

 private:
  char* workspace_;
  int64_t bytes_ = 0;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_BLOCK_LAYOUT_H_
