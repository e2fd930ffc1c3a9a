#ifndef PLANC_RUNTIME_DEVICE_HOST_DEVICE_H_
#define PLANC_RUNTIME_DEVICE_HOST_DEVICE_H_

#include <memory>

#include "runtime/device/device.h"

namespace planc {

// The host as a device: page-aligned anonymous memory (2 MiB pages where the kernel grants them),
// faulted in at allocation so that no page fault happens inside a step; streams are threads.
std::unique_ptr<Device> CreateHostDevice();

}  // namespace planc

#endif  // PLANC_RUNTIME_DEVICE_HOST_DEVICE_H_
