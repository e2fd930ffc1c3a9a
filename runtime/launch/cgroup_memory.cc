#include "runtime/launch/cgroup_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// Version 1 says "no limit" with the largest whole number of pages.
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;

// A hierarchy of groups and where it is mounted.
struct Mount {
  std::string root;   // the group that is mounted
  std::string point;  // where
};

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool Lists(const std::string& list, const std::string& word) {
  for (const auto& part : absl::StrSplit(list, ',')) {
    if (part == word) return true;
  }
  return false;
}

// "31 23 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"; between the options
// and the dash there may be more fields.
std::optional<Mount> FindMount(const std::string& proc, bool second_version) {
  for (const std::string& line : Lines(proc + "/self/mountinfo")) {
    const std::vector<std::string> halves = absl::StrSplit(line, " - ");
    if (halves.size() != 2) continue;
    const std::vector<std::string> place = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> kind = absl::StrSplit(halves[1], ' ');
    if (place.size() < 5 || kind.size() < 3) continue;
    const bool fits =
        second_version ? kind[0] == "cgroup2" : kind[0] == "cgroup" && Lists(kind[2], "memory");
    if (fits) return Mount{place[3], place[4]};
  }
  return std::nullopt;
}

// The group of this process: "4:memory:/jobs/7" of version 1, "0::/jobs/7" of version 2.
std::optional<std::string> OwnGroup(const std::string& proc, bool second_version) {
  for (const std::string& line : Lines(proc + "/self/cgroup")) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool fits = second_version ? parts[1].empty() : Lists(parts[1], "memory");
    if (fits) return parts[2];
  }
  return std::nullopt;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// From the own group up to the one that is mounted.
std::vector<MemoryCgroup> GroupsOf(const std::string& proc, bool second_version) {
  const std::optional<Mount> mount = FindMount(proc, second_version);
  const std::optional<std::string> own = OwnGroup(proc, second_version);
  if (!mount.has_value() || !own.has_value()) return {};
  std::string below = *own;
  // Without a namespace of its own a container sees the path from the machine's root.
  if (mount->root != "/" && absl::StartsWith(below, mount->root)) {
    below.erase(0, mount->root.size());
  }
  if (absl::StrContains(below, "..") || !Exists(mount->point + below)) below.clear();
  std::vector<MemoryCgroup> groups;
  while (below.size() > 1) {
    groups.push_back({mount->point + below, second_version});
    below.erase(below.find_last_of('/'));
  }
  groups.push_back({mount->point, second_version});
  return groups;
}

int64_t Difference(std::optional<int64_t> limit, std::optional<int64_t> used) {
  if (!limit.has_value() || !used.has_value()) return 0;
  return std::max<int64_t>(0, *limit - *used);
}

// Swap that a group of version 2 may still use; without a bound the machine's decides.
int64_t SwapOf(const std::string& directory) {
  if (!Exists(directory + "/memory.swap.max")) return kNoLimit;
  const std::optional<int64_t> most = ReadNumber(directory + "/memory.swap.max");
  if (!most.has_value()) return kNoLimit;
  return Difference(most, ReadNumber(directory + "/memory.swap.current"));
}

}  // namespace

std::optional<int64_t> ReadKeyedNumber(const std::string& path, const std::string& key) {
  for (const std::string& line : Lines(path)) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    int64_t number = 0;
    if (parts.size() == 2 && parts[0] == key && absl::SimpleAtoi(parts[1], &number)) return number;
  }
  return std::nullopt;
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::vector<std::string> lines = Lines(path);
  int64_t number = 0;
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &number)) return std::nullopt;
  return number;
}

std::vector<MemoryCgroup> MemoryCgroups(const std::string& proc) {
  std::vector<MemoryCgroup> groups = GroupsOf(proc, /*second_version=*/false);
  return groups.empty() ? GroupsOf(proc, /*second_version=*/true) : groups;
}

std::optional<CgroupRoom> RoomOf(const MemoryCgroup& group) {
  const std::string& directory = group.directory;
  const bool second = group.second_version;
  const std::optional<int64_t> limit =
      ReadNumber(directory + (second ? "/memory.max" : "/memory.limit_in_bytes"));
  const std::optional<int64_t> used =
      ReadNumber(directory + (second ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit.has_value() || !used.has_value() || *limit >= kNoLimit) return std::nullopt;
  // What the kernel drops before it refuses anything. Shared memory is not among it.
  int64_t cache = 0;
  for (const char* key : {"inactive_file", "active_file", "slab_reclaimable"}) {
    cache += ReadKeyedNumber(directory + "/memory.stat", absl::StrCat(second ? "" : "total_", key))
                 .value_or(0);
  }
  const int64_t held = std::max<int64_t>(0, *used - cache);
  CgroupRoom room;
  room.free_bytes = std::max<int64_t>(0, *limit - held);
  if (second) {
    room.swap_bytes = SwapOf(directory);
  } else {
    const std::optional<int64_t> both = ReadNumber(directory + "/memory.memsw.limit_in_bytes");
    const std::optional<int64_t> of_both = ReadNumber(directory + "/memory.memsw.usage_in_bytes");
    const bool bounded = both.has_value() && *both < kNoLimit;
    room.swap_bytes =
        bounded ? std::max<int64_t>(0, Difference(both, of_both) - Difference(limit, used))
                : kNoLimit;
  }
  return room;
}

OutOfMemoryKills CountOutOfMemoryKills(const std::string& proc) {
  OutOfMemoryKills kills;
  const std::vector<MemoryCgroup> groups = MemoryCgroups(proc);
  if (!groups.empty()) {
    const std::string file = groups[0].second_version ? "/memory.events" : "/memory.oom_control";
    kills.own_group = ReadKeyedNumber(groups[0].directory + file, "oom_kill").value_or(0);
  }
  kills.machine = ReadKeyedNumber(proc + "/vmstat", "oom_kill").value_or(0);
  return kills;
}

}  // namespace planc
