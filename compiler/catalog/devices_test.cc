#include "compiler/catalog/devices.h"

#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(DevicesTest, EveryAcceleratorHasFigures) {
  for (const DeviceSpec& device : Devices()) {
    EXPECT_EQ(FindDevice(device.name), &device);
    EXPECT_EQ(device.memory_bytes == 0, device.name == "host") << device.name;
    EXPECT_GT(device.fp32_flops, 0) << device.name;
    EXPECT_GE(device.bf16_flops, device.fp32_flops) << device.name;
    EXPECT_GT(device.memory_bandwidth, device.link_bandwidth) << device.name;
    EXPECT_GT(device.link_bandwidth, device.network_bandwidth) << device.name;
  }
  EXPECT_EQ(FindDevice("abacus"), nullptr);
}

// Operations per byte at which a device stops being bound by memory, from the data sheets.
TEST(DevicesTest, RidgePoints) {
  const auto ridge = [](const DeviceSpec* device) {
    return device->bf16_flops / device->memory_bandwidth;
  };
  EXPECT_NEAR(ridge(FindDevice("a100-sxm-80gb")), 153, 0.5);
  EXPECT_NEAR(ridge(FindDevice("h100-sxm-80gb")), 295, 0.5);
  EXPECT_NEAR(ridge(FindDevice("h200-sxm-141gb")), 206, 0.5);
  EXPECT_NEAR(ridge(FindDevice("b200-sxm-180gb")), 281, 0.5);
}

}  // namespace
}  // namespace planc
