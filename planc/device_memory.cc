#include "planc/device_memory.h"

#include "runtime/process_group/group_use.h"

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

DeviceReserve DeviceReserveOf(const Plan& plan, const RankClass& rank_class) {
  DeviceReserve reserve;
  if (plan.job.cluster().device() == "host") return reserve;
  Coordinates coordinates{};
  coordinates[static_cast<int>(Axis::kPp)] = rank_class.stage;
  for (const GroupConnection& connection : ConnectionsOf(plan, plan.mesh.RankOf(coordinates))) {
    reserve.communicators += connection.membership.size() > 1 ? 1 : 0;
  }
  reserve.bytes = kContextReserveBytes + reserve.communicators * kCommunicatorReserveBytes;
  return reserve;
}

int64_t DeviceNeed(const Plan& plan, const RankClass& rank_class) {
  return DeviceBytes(plan, rank_class) + DeviceReserveOf(plan, rank_class).bytes;
}

}  // namespace planc
