#include "runtime/launch/memory_room.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/launch/cgroup_memory.h"

namespace planc {
namespace {

// glibc's, where the limit of the stack is none.
constexpr int64_t kDefaultStackBytes = int64_t{2} << 20;

// "MemAvailable:   23356968 kB" in bytes.
std::optional<int64_t> ReadKibibytes(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t number = 0;
    if (parts.size() == 3 && parts[0] == key + ":" && absl::SimpleAtoi(parts[1], &number)) {
      return number * 1024;
    }
  }
  return std::nullopt;
}

std::vector<MemoryRoom> LimitOf(int resource, const std::string& by) {
  rlimit limit{};
  const bool known = getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
  if (!known || limit.rlim_cur == RLIM_INFINITY) return {};
  return {{static_cast<int64_t>(limit.rlim_cur), by}};
}

}  // namespace

std::vector<MemoryRoom> NodeMemoryRooms(const std::string& proc) {
  std::vector<MemoryRoom> rooms;
  const std::string meminfo = proc + "/meminfo";
  const int64_t swap = ReadKibibytes(meminfo, "SwapFree").value_or(0);
  const std::optional<int64_t> available = ReadKibibytes(meminfo, "MemAvailable");
  const std::string with_swap = swap > 0 ? " with free swap" : "";
  if (available.has_value()) {
    rooms.push_back({*available + swap, absl::StrCat("the machine: MemAvailable", with_swap)});
  }
  for (const MemoryCgroup& group : MemoryCgroups(proc)) {
    const std::optional<CgroupRoom> room = RoomOf(group);
    if (!room.has_value()) continue;
    rooms.push_back({room->free_bytes + std::min(room->swap_bytes, swap),
                     absl::StrCat(group.second_version ? "memory.max" : "memory.limit_in_bytes",
                                  " of ", group.directory)});
  }
  return rooms;
}

std::vector<MemoryRoom> PrivateMemoryLimits() {
  return LimitOf(RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)");
}

std::vector<MemoryRoom> MappedMemoryLimits() { return LimitOf(RLIMIT_AS, "RLIMIT_AS (ulimit -v)"); }

int64_t MappedProgramBytes(const std::string& proc) {
  const std::string status = proc + "/self/status";
  return ReadKibibytes(status, "VmExe").value_or(0) + ReadKibibytes(status, "VmLib").value_or(0);
}

int64_t ThreadStackBytes() {
  const std::vector<MemoryRoom> stack = LimitOf(RLIMIT_STACK, "");
  return stack.empty() ? kDefaultStackBytes : stack[0].bytes;
}

}  // namespace planc
