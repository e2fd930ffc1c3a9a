#ifndef PLANC_RUNTIME_LAUNCH_CGROUP_MEMORY_H_
#define PLANC_RUNTIME_LAUNCH_CGROUP_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planc {

// One control group that bounds this process's memory: its own, or one that this lies in.
struct MemoryCgroup {
  std::string directory;  // of its files
  bool second_version = false;
};

// The groups of this process that this process sees, its own first: of version 2 or, where the
// memory controller is one of version 1, of that. Empty where there are none. `proc`: where /proc
// is mounted.
std::vector<MemoryCgroup> MemoryCgroups(const std::string& proc = "/proc");

// What one group leaves. Page cache that the kernel can drop counts as free.
struct CgroupRoom {
  int64_t free_bytes = 0;  // below the limit
  int64_t swap_bytes = 0;  // that its processes may use in addition
};
// Nothing where the group has no limit.
std::optional<CgroupRoom> RoomOf(const MemoryCgroup& group);

// How many processes the kernel has ended for want of memory, so far.
struct OutOfMemoryKills {
  int64_t own_group = 0;  // processes of this process's own control group
  int64_t machine = 0;    // of this machine
};
OutOfMemoryKills CountOutOfMemoryKills(const std::string& proc = "/proc");

// The number behind `key` in a file of lines "<key> <number>", as memory.stat and /proc/vmstat are.
std::optional<int64_t> ReadKeyedNumber(const std::string& path, const std::string& key);
// The number that is all of a file. Nothing for "max" or where there is none.
std::optional<int64_t> ReadNumber(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_CGROUP_MEMORY_H_
