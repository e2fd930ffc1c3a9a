#include "runtime/process_group/stream_copy.h"

#include <immintrin.h>

#include <cstring>

namespace planc {
namespace {

constexpr int64_t kVector = sizeof(__m256i);
constexpr int64_t kLine = 2 * kVector;
// Below this, the way through memory takes longer than the one from core to core.
constexpr int64_t kSmall = 32 << 10;

}  // namespace

void StreamCopy(void* to, const void* from, int64_t bytes) {
  auto* target = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) % kLine);
  if (bytes < kSmall) {
    if (bytes > 0) std::memcpy(target, source, bytes);
    return;
  }
  const int64_t head = (kLine - misaligned) % kLine;
  std::memcpy(target, source, head);
  int64_t done = head;
  for (; done + kLine <= bytes; done += kLine) {
    const auto* const next = reinterpret_cast<const __m256i*>(source + done);
    auto* const line = reinterpret_cast<__m256i*>(target + done);
    const __m256i low = _mm256_loadu_si256(next);
    const __m256i high = _mm256_loadu_si256(next + 1);
    _mm256_stream_si256(line, low);
    _mm256_stream_si256(line + 1, high);
  }
  std::memcpy(target + done, source + done, bytes - done);
  // Streaming stores may become visible after later ones otherwise.
  _mm_sfence();
}

}  // namespace planc
