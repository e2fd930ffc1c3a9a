#include "runtime/device/static_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

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

// VmSize or VmRSS of this process as the kernel counts it.
int64_t ProcessBytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kibibytes = 0;
    if (word == key + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

// Bytes of [begin, begin + bytes) that lie in a mapping of this process, from the kernel's list.
int64_t BytesInMappings(const void* begin, int64_t bytes) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t last = first + bytes;
  std::ifstream maps("/proc/self/maps");
  int64_t found = 0;
  uintptr_t from = 0;
  uintptr_t to = 0;
  char dash = 0;
  std::string rest;
  while (maps >> std::hex >> from >> dash >> to && std::getline(maps, rest)) {
    if (to > first && from < last) found += std::min(to, last) - std::max(from, first);
  }
  return found;
}

TEST(StaticArenaTest, ReportsWhatTheKernelMapped) {
  const auto device = CreateHostDevice();
  // So that the first list node, stream and file of this test do not count below.
  StaticArena(device.get(), "first").Allocate(64).IgnoreError();
  ProcessBytes("VmSize");
  for (const int64_t bytes : {64, 4096, 4096 + 64, (2 << 20) + 64, (5 << 20) + 4096, 64 << 20}) {
    StaticArena arena(device.get(), "weights");
    const int64_t mapped_before = ProcessBytes("VmSize");
    ASSERT_TRUE(arena.Allocate(bytes).ok());
    const DeviceMemory memory = arena.Measure();
    EXPECT_EQ(ProcessBytes("VmSize") - mapped_before, memory.mapped_bytes) << bytes;
    EXPECT_GE(memory.mapped_bytes, bytes);
    EXPECT_LT(memory.mapped_bytes, bytes + 4096) << "rounded to pages, and no further";
    EXPECT_EQ(BytesInMappings(arena.base(), memory.mapped_bytes), memory.mapped_bytes) << bytes;
    EXPECT_EQ(memory.resident_bytes, memory.mapped_bytes) << "faulted in by Allocate";
  }
}

TEST(StaticArenaTest, SeesPagesThatTheKernelTookBack) {
  const auto device = CreateHostDevice();
  StaticArena arena(device.get(), "weights");
  ASSERT_TRUE(arena.Allocate(64 * 4096).ok());
  ASSERT_EQ(madvise(arena.base() + 4096, 3 * 4096, MADV_DONTNEED), 0);
  EXPECT_EQ(arena.Measure().mapped_bytes, 64 * 4096);
  EXPECT_EQ(arena.Measure().resident_bytes, 61 * 4096);
}

TEST(StaticArenaTest, AnEmptyArenaHasNoMemory) {
  const auto device = CreateHostDevice();
  StaticArena arena(device.get(), "gradients");
  ASSERT_TRUE(arena.Allocate(0).ok());
  EXPECT_EQ(arena.base(), nullptr);
  EXPECT_EQ(arena.Measure().mapped_bytes, 0);
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
