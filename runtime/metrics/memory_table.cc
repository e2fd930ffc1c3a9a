#include "runtime/metrics/memory_table.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planc {
namespace {

std::string Row(const std::string& name, int64_t planned, int64_t allocated) {
  return absl::StrFormat("  %-14s %18d %18d %12d\n", name, planned, allocated, allocated - planned);
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

std::string MemoryTable(const RankClass& rank_class,
                        const std::array<int64_t, kMemoryKindCount>& allocated_bytes,
                        int64_t peak_resident_bytes) {
  std::string table = absl::StrFormat("  %-14s %18s %18s %12s\n", "memory (bytes)", "planned",
                                      "allocated", "difference");
  int64_t planned = 0;
  int64_t allocated = 0;
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    table += Row(MemoryKindName(static_cast<MemoryKind>(kind)), rank_class.arena_bytes[kind],
                 allocated_bytes[kind]);
    planned += rank_class.arena_bytes[kind];
    allocated += allocated_bytes[kind];
  }
  table += Row("all arenas", planned, allocated);
  absl::StrAppendFormat(&table, "  %-14s %18s %18d\n", "resident peak", "", peak_resident_bytes);
  return table;
}

}  // namespace planc
