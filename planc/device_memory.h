#ifndef PLANC_PLANC_DEVICE_MEMORY_H_
#define PLANC_PLANC_DEVICE_MEMORY_H_

#include <cstdint>

#include "schemas/plan.h"

namespace planc {

// Whether an arena of `kind` lies in the memory that cluster.memory bounds: all do where ranks run
// on the host; on a device host_pinned is memory of the host.
bool IsDeviceMemory(const Plan& plan, MemoryKind kind);

// Bytes of all arenas of one rank of the class that lie there.
int64_t DeviceBytes(const Plan& plan, const RankClass& rank_class);

}  // namespace planc

#endif  // PLANC_PLANC_DEVICE_MEMORY_H_
