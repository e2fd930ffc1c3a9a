#ifndef PLANC_RUNTIME_DEVICE_DEVICE_H_
#define PLANC_RUNTIME_DEVICE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// One in-order queue of a device: work that carries out the instructions of one plan stream. It
// owns a thread that sleeps between runs; nothing is allocated after creation.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  // Runs the body given at creation once, asynchronously. REQUIRES: the stream is idle.
  virtual void Start() = 0;
  // Blocks until the run has ended; returns at once when idle.
  virtual void Wait() = 0;
  virtual const std::string& name() const = 0;
};

// What one allocation takes of the machine, as the system holds it.
struct DeviceMemory {
  int64_t mapped_bytes = 0;    // address space: what was asked, rounded up to whole pages
  int64_t resident_bytes = 0;  // of it physically present
};

// Memory and streams of one rank's accelerator, or of the host. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  // "host" or "cuda".
  virtual std::string name() const = 0;

  // Zero-filled memory of the device, physically present when this returns and aligned to at least
  // kAlignment of schemas/plan.h. Zero bytes give nullptr.
  // Errors: ResourceExhausted when the machine does not have `bytes` free.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // REQUIRES: `memory` came from Allocate and was not released before. nullptr is allowed.
  virtual void Release(void* memory) = 0;
  // What the allocation at `memory` takes now. REQUIRES: as for Release; nothing for nullptr.
  virtual DeviceMemory Measure(const void* memory) = 0;

  // Synchronous copies between device memory and ordinary host memory.
  virtual absl::Status CopyToHost(const void* device_memory, void* host_memory, int64_t bytes) = 0;
  virtual absl::Status CopyFromHost(const void* host_memory, void* device_memory,
                                    int64_t bytes) = 0;

  // A stream whose every Start() calls `body` on the stream's own thread.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> CreateStream(
      const std::string& name, std::function<void()> body) = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DEVICE_DEVICE_H_
