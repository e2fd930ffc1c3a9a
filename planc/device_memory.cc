#include "planc/device_memory.h"

namespace planc {

bool IsDeviceMemory(const Plan& plan, MemoryKind kind) {
  return kind != MemoryKind::kHostPinned || plan.job.cluster().device() == "host";
}

int64_t DeviceBytes(const Plan& plan, const RankClass& rank_class) {
  int64_t bytes = 0;
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    if (IsDeviceMemory(plan, static_cast<MemoryKind>(kind))) bytes += rank_class.arena_bytes[kind];
  }
  return bytes;
}

}  // namespace planc
