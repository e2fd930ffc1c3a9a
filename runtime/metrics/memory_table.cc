#include "runtime/metrics/memory_table.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planc {
namespace {

std::string Row(const std::string& name, int64_t planned, const DeviceMemory& memory) {
  return absl::StrFormat("  %-14s %18d %18d %18d %12d\n", name, planned, memory.mapped_bytes,
                         memory.resident_bytes, memory.mapped_bytes - planned);
}

}  // namespace

int64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmHWM:", 0) != 0) continue;
    int64_t kibibytes = 0;
    std::istringstream(line.substr(6)) >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

std::string MemoryTable(const RankClass& rank_class, const ArenaMemory& arenas,
                        int64_t peak_resident_bytes) {
  std::string table = absl::StrFormat("  %-14s %18s %18s %18s %12s\n", "memory (bytes)", "planned",
                                      "mapped", "resident", "difference");
  int64_t planned = 0;
  DeviceMemory sum;
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    table += Row(MemoryKindName(static_cast<MemoryKind>(kind)), rank_class.arena_bytes[kind],
                 arenas[kind]);
    planned += rank_class.arena_bytes[kind];
    sum.mapped_bytes += arenas[kind].mapped_bytes;
    sum.resident_bytes += arenas[kind].resident_bytes;
  }
  table += Row("all arenas", planned, sum);
  absl::StrAppendFormat(&table, "  %-14s %18s %18s %18d\n", "process peak", "", "",
                        peak_resident_bytes);
  absl::StrAppendFormat(&table, "  %-14s %18s %18s %18d\n", "beside arenas", "", "",
                        peak_resident_bytes - sum.resident_bytes);
  return table;
}

}  // namespace planc
