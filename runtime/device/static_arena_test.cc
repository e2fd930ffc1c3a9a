#include "runtime/device/static_arena.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "runtime/device/host_device.h"

namespace planc {
namespace {

constexpr uintptr_t kAlignment = 64;

TEST(StaticArenaTest, AllocatesOnceAlignedAndZeroed) {
  const auto device = CreateHostDevice();
  for (const int64_t bytes : {64, 4096 + 64, (5 << 20) + 64}) {
    StaticArena arena(device.get(), "weights");
    ASSERT_EQ(arena.state(), StaticArena::State::kInit);
    ASSERT_TRUE(arena.Allocate(bytes).ok());
    EXPECT_EQ(arena.state(), StaticArena::State::kStatic);
    EXPECT_EQ(arena.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.base()) % kAlignment, 0u);
    for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(arena.base()[i], std::byte{0}) << i;
    EXPECT_EQ(arena.Allocate(64).code(), absl::StatusCode::kFailedPrecondition);
    arena.Teardown();
    EXPECT_EQ(arena.state(), StaticArena::State::kTeardown);
    EXPECT_EQ(arena.Allocate(64).code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(StaticArenaTest, AnEmptyArenaHasNoMemory) {
  const auto device = CreateHostDevice();
  StaticArena arena(device.get(), "gradients");
  ASSERT_TRUE(arena.Allocate(0).ok());
  EXPECT_EQ(arena.base(), nullptr);
}

TEST(StaticArenaTest, TooMuchIsAnErrorThatNamesTheArena) {
  const auto device = CreateHostDevice();
  StaticArena arena(device.get(), "activations");
  const absl::Status status = arena.Allocate(int64_t{1} << 46);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("arena activations"), absl::string_view::npos);
  EXPECT_EQ(arena.state(), StaticArena::State::kInit);
}

}  // namespace
}  // namespace planc
