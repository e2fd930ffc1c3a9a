#include "kernels/instruction_set.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "hwy/targets.h"

namespace planc::host {
namespace {

struct Row {
  const char* name;
  const char* bits;
  const char* needs;
};

constexpr Row kRows[] = {
#define PLANC_INSTRUCTION_SET_ROW(enumerator, name, bits, needs) {name, bits, needs},
    PLANC_INSTRUCTION_SETS(PLANC_INSTRUCTION_SET_ROW)
#undef PLANC_INSTRUCTION_SET_ROW
};

const Row& RowOf(InstructionSet set) { return kRows[static_cast<int>(set)]; }

// Linux keeps the large state of tiles from processes that did not ask for it (asm/prctl.h and
// Documentation/arch/x86/xstate.rst).
bool TilesPermitted() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr unsigned long kTileData = 18;      // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool CpuHas(InstructionSet set) {
  // These also ask whether the operating system saves the registers.
  __builtin_cpu_init();
  switch (set) {
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd");
    case InstructionSet::kAmxBf16:
      return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("amx-tile") &&
             __builtin_cpu_supports("amx-bf16") && TilesPermitted();
  }
  return false;
}

}  // namespace

const char* InstructionSetName(InstructionSet set) { return RowOf(set).name; }
const char* InstructionSetBits(InstructionSet set) { return RowOf(set).bits; }
const char* InstructionSetNeeds(InstructionSet set) { return RowOf(set).needs; }

std::vector<InstructionSet> InstructionSetsUpTo(InstructionSet largest) {
  std::vector<InstructionSet> sets;
  for (int set = 0; set <= static_cast<int>(largest); ++set) {
    sets.push_back(static_cast<InstructionSet>(set));
  }
  return sets;
}

std::optional<InstructionSet> FindInstructionSet(const std::string& name) {
  for (size_t set = 0; set < std::size(kRows); ++set) {
    if (name == kRows[set].name) return static_cast<InstructionSet>(set);
  }
  return std::nullopt;
}

std::string InstructionSetNames() {
  return absl::StrJoin(kRows, ", ",
                       [](std::string* out, const Row& row) { absl::StrAppend(out, row.name); });
}

absl::StatusOr<InstructionSet> DetectInstructionSet() {
  if (!CpuHas(InstructionSet::kAvx2)) {
    return absl::FailedPreconditionError(
        absl::StrCat("this CPU lacks ", InstructionSetNeeds(InstructionSet::kAvx2)));
  }
  InstructionSet largest = InstructionSet::kAvx2;
  for (size_t set = 1; set < std::size(kRows); ++set) {
    if (!CpuHas(static_cast<InstructionSet>(set))) break;
    largest = static_cast<InstructionSet>(set);
  }
  return largest;
}

void UseVectorsOf(InstructionSet set) {
  // Two targets are compiled; see third_party/BUILD.
  hwy::SetSupportedTargetsForTest(set == InstructionSet::kAvx2 ? HWY_AVX2 : 0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace planc::host
