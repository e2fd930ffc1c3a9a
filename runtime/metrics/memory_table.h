#ifndef PLANC_RUNTIME_METRICS_MEMORY_TABLE_H_
#define PLANC_RUNTIME_METRICS_MEMORY_TABLE_H_

#include <array>
#include <cstdint>
#include <string>

#include "runtime/device/device.h"
#include "schemas/plan.h"

namespace planc {

// What the device holds for each arena of one rank, by memory kind.
using ArenaMemory = std::array<DeviceMemory, kMemoryKindCount>;

// Peak resident memory of this process (VmHWM), 0 where the system does not say.
int64_t PeakResidentBytes();

// A table of one rank by memory kind and in sum: bytes that the plan says, bytes that the device
// mapped, how many of these are resident, and how many more were mapped than planned. Below, what
// the process had resident at its peak, and how much of that were no arenas.
std::string MemoryTable(const RankClass& rank_class, const ArenaMemory& arenas,
                        int64_t peak_resident_bytes);

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_MEMORY_TABLE_H_
