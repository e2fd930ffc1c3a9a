// One suite for every Device.

#include "runtime/device/device.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/device/host_device.h"

namespace planc {
namespace {

constexpr uintptr_t kAlignment = 64;

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<Device>()> create;
};

class DeviceTest : public ::testing::TestWithParam<Implementation> {
 protected:
  DeviceTest() : device_(GetParam().create()) {}
  const std::unique_ptr<Device> device_;
};

TEST_P(DeviceTest, SaysItsName) { EXPECT_EQ(device_->name(), GetParam().name); }

TEST_P(DeviceTest, MemoryIsZeroAlignedAndKeepsWhatIsCopied) {
  for (const int64_t bytes : {1, 64, 4095, 1 << 20, (2 << 20) + 1}) {
    const absl::StatusOr<void*> memory = device_->Allocate(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % kAlignment, 0u);
    std::vector<uint8_t> host(bytes, 1);
    ASSERT_TRUE(device_->CopyToHost(*memory, host.data(), bytes).ok());
    EXPECT_EQ(host, std::vector<uint8_t>(bytes, 0));
    for (int64_t i = 0; i < bytes; ++i) host[i] = static_cast<uint8_t>(i * 31);
    ASSERT_TRUE(device_->CopyFromHost(host.data(), *memory, bytes).ok());
    std::vector<uint8_t> back(bytes);
    ASSERT_TRUE(device_->CopyToHost(*memory, back.data(), bytes).ok());
    EXPECT_EQ(back, host);
    device_->Release(*memory);
  }
}

TEST_P(DeviceTest, MemoryThatWasReleasedComesBackZeroed) {
  for (int round = 0; round < 3; ++round) {
    const absl::StatusOr<void*> memory = device_->Allocate(8192);
    ASSERT_TRUE(memory.ok()) << memory.status();
    std::vector<uint8_t> host(8192, 1);
    ASSERT_TRUE(device_->CopyToHost(*memory, host.data(), 8192).ok());
    EXPECT_EQ(host, std::vector<uint8_t>(8192, 0));
    std::memset(host.data(), 0xff, host.size());
    ASSERT_TRUE(device_->CopyFromHost(host.data(), *memory, 8192).ok());
    device_->Release(*memory);
  }
}

TEST_P(DeviceTest, NothingAndTooMuch) {
  const absl::StatusOr<void*> nothing = device_->Allocate(0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(*nothing, nullptr);
  device_->Release(*nothing);
  EXPECT_EQ(device_->Allocate(int64_t{1} << 46).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_P(DeviceTest, AStreamRunsItsBodyOncePerStart) {
  int runs = 0;
  auto stream = device_->CreateStream("dp", [&runs] { ++runs; });
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ((*stream)->name(), "dp");
  (*stream)->Wait();
  EXPECT_EQ(runs, 0);
  for (int i = 1; i <= 100; ++i) {
    (*stream)->Start();
    (*stream)->Wait();
    ASSERT_EQ(runs, i);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, DeviceTest,
                         ::testing::Values(Implementation{"host", &CreateHostDevice}),
                         [](const ::testing::TestParamInfo<Implementation>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace planc
