#include "compiler/catalog/devices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace planc {

const std::vector<DeviceSpec>& Devices() {
  static const auto* const kDevices = new std::vector<DeviceSpec>{
#define PLANC_DEVICE_SYNONYMS(called, devices)
#define PLANC_DEVICE(name, memory, fp32, bf16, fp8, bandwidth, link, network) \
  {name, memory, fp32, bf16, fp8, bandwidth, link, network},
#include "compiler/catalog/devices.def"
#undef PLANC_DEVICE
#undef PLANC_DEVICE_SYNONYMS
  };
  return *kDevices;
}

std::vector<std::string> DevicesCalled(const std::string& name) {
  const std::string wanted = absl::AsciiStrToLower(name);
  for (const auto& [called, devices] : std::vector<std::pair<std::string, std::string>>{
#define PLANC_DEVICE(...)
#define PLANC_DEVICE_SYNONYMS(called, devices) {called, devices},
#include "compiler/catalog/devices.def"
#undef PLANC_DEVICE_SYNONYMS
#undef PLANC_DEVICE
       }) {
    const std::vector<std::string> names = absl::StrSplit(called, ' ');
    if (std::find(names.begin(), names.end(), wanted) != names.end()) {
      return absl::StrSplit(devices, ' ');
    }
  }
  return {};
}

const DeviceSpec* FindDevice(const std::string& name) {
  for (const DeviceSpec& device : Devices()) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

}  // namespace planc
