#ifndef PLANC_KERNELS_ALIGNED_BUFFER_H_
#define PLANC_KERNELS_ALIGNED_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace planc::host {

// A workspace for tests and benchmarks: aligned to 64 bytes, filled with NaN patterns so that a
// read of something never written shows, and followed by a guard.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t bytes) : size_(bytes), storage_(bytes + kAlignment + kGuardBytes) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    offset_ = (kAlignment - address % kAlignment) % kAlignment;
    std::memset(data(), kPattern, size_ + kGuardBytes);
  }

  char* data() { return storage_.data() + offset_; }
  size_t size() const { return size_; }

  // False once somebody wrote right behind the buffer.
  bool GuardIntact() {
    const char* guard = data() + size_;
    return std::all_of(guard, guard + kGuardBytes,
                       [](char c) { return c == static_cast<char>(kPattern); });
  }

 private:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kGuardBytes = 256;
  static constexpr int kPattern = 0xff;

  size_t size_;
  size_t offset_ = 0;
  std::vector<char> storage_;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_ALIGNED_BUFFER_H_
