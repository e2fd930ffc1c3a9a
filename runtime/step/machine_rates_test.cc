#include "runtime/step/machine_rates.h"

#include <gtest/gtest.h>

#include <memory>

#include "kernels/instruction_set.h"
#include "runtime/device/host_device.h"

namespace planc {
namespace {

// Any machine that runs this does more than a calculator and less than a rack of accelerators.
TEST(MachineRates, AreOfThisWorld) {
  const std::unique_ptr<Device> device = CreateHostDevice();
  const auto rates =
      MeasureMachineRates(device.get(), /*threads=*/1, host::InstructionSet::kAvx2, /*bf16=*/true);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->threads, 1);
  for (const double rate : {rates->fp32_flops, rates->bf16_flops, rates->bytes_per_second}) {
    EXPECT_GT(rate, 1e6);
    EXPECT_LT(rate, 1e15);
  }
}

TEST(MachineRates, WithoutBf16ItIsNotMeasured) {
  const std::unique_ptr<Device> device = CreateHostDevice();
  const auto rates =
      MeasureMachineRates(device.get(), /*threads=*/1, host::InstructionSet::kAvx2, /*bf16=*/false);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->bf16_flops, 0);
  EXPECT_GT(rates->fp32_flops, 0);
}

}  // namespace
}  // namespace planc
