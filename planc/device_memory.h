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

// What libraries take of a device's memory beside the arenas, which the plan leaves free: a stated
// reserve, since they allocate at run time. 0 on the host, where what is free is measured before
// ranks start.
//
//   context        512 MiB: the CUDA context with the kernels of cuBLASLt and NCCL; 300 to 500 MiB
//                  are common on devices since A100
//   communicator   128 MiB for each NCCL communicator of the rank with other members: buffers of
//                  4 MiB for each of up to 16 channels and two directions (NCCL_BUFFSIZE)
//
// Arenas are allocated once and never grow, so nothing is fragmented.
struct DeviceReserve {
  int64_t communicators = 0;
  int64_t bytes = 0;
};
inline constexpr int64_t kContextReserveBytes = int64_t{512} << 20;
inline constexpr int64_t kCommunicatorReserveBytes = int64_t{128} << 20;
DeviceReserve DeviceReserveOf(const Plan& plan, const RankClass& rank_class);

// What cluster.memory must hold for one rank of the class: DeviceBytes and the reserve.
int64_t DeviceNeed(const Plan& plan, const RankClass& rank_class);

}  // namespace planc

#endif  // PLANC_PLANC_DEVICE_MEMORY_H_
