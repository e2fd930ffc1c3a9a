#ifndef PLANC_COMPILER_CATALOG_DEVICES_H_
#define PLANC_COMPILER_CATALOG_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace planc {

// One accelerator type; see devices.def for the meaning of the figures.
struct DeviceSpec {
  std::string name;
  int64_t memory_bytes = 0;      // 0: not bounded by the catalogue (host)
  double fp32_flops = 0;         // operations per second
  double bf16_flops = 0;         // operations per second
  double fp8_flops = 0;          // operations per second; 0: none
  double memory_bandwidth = 0;   // bytes per second
  double link_bandwidth = 0;     // bytes per second, one direction, inside a node
  double network_bandwidth = 0;  // bytes per second, one direction, between nodes
};

// The rows of devices.def, in its order.
const std::vector<DeviceSpec>& Devices();

// The device called `name`, or nullptr.
const DeviceSpec* FindDevice(const std::string& name);

// The devices that people call `name`: "cpu", "H100", "a100"; empty for a name that says nothing.
std::vector<std::string> DevicesCalled(const std::string& name);

}  // namespace planc

#endif  // PLANC_COMPILER_CATALOG_DEVICES_H_
