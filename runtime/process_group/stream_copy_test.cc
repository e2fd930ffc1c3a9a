#include "runtime/process_group/stream_copy.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace planc {
namespace {

// Sizes around the bound of small copies and around whole cache lines, from and to any alignment.
TEST(StreamCopyTest, CopiesExactlyTheBytesThatItIsAskedFor) {
  constexpr int64_t kMargin = 128;
  constexpr int64_t kMost = 100'000;
  std::vector<uint8_t> from(kMost + kMargin);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
  for (const int64_t bytes : {0, 1, 63, 64, 32'767, 32'768, 32'769, 65'536, 65'599, 99'999}) {
    for (const int64_t source : {0, 1, 32}) {
      for (const int64_t target : {0, 4, 33, 63}) {
        std::vector<uint8_t> to(bytes + 2 * kMargin, 0xee);
        StreamCopy(to.data() + target, from.data() + source, bytes);
        ASSERT_EQ(std::memcmp(to.data() + target, from.data() + source, bytes), 0)
            << bytes << " " << source << " " << target;
        for (int64_t i = 0; i < target; ++i) ASSERT_EQ(to[i], 0xee) << bytes;
        for (size_t i = target + bytes; i < to.size(); ++i) ASSERT_EQ(to[i], 0xee) << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace planc
