#include "compiler/catalog/devices.h"

namespace planc {

const std::vector<DeviceSpec>& Devices() {
  static const auto* const kDevices = new std::vector<DeviceSpec>{
#define PLANC_DEVICE(name, memory, fp32, bf16, fp8, bandwidth, link, network) \
  {name, memory, fp32, bf16, fp8, bandwidth, link, network},
#include "compiler/catalog/devices.def"
#undef PLANC_DEVICE
  };
  return *kDevices;
}

const DeviceSpec* FindDevice(const std::string& name) {
  for (const DeviceSpec& device : Devices()) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

}  // namespace planc
