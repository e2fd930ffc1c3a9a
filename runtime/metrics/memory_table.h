#ifndef PLANC_RUNTIME_METRICS_MEMORY_TABLE_H_
#define PLANC_RUNTIME_METRICS_MEMORY_TABLE_H_

#include <array>
#include <cstdint>
#include <string>

#include "schemas/plan.h"

namespace planc {

// Peak resident memory of this process (VmHWM), 0 where the system does not say.
int64_t PeakResidentBytes();

// A table of planned and allocated bytes of one rank by memory kind, with their difference, the
// sum, and what the process had resident at its peak.
std::string MemoryTable(const RankClass& rank_class,
                        const std::array<int64_t, kMemoryKindCount>& allocated_bytes,
                        int64_t peak_resident_bytes);

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_MEMORY_TABLE_H_
