#ifndef PLANC_KERNELS_INSTRUCTION_SET_H_
#define PLANC_KERNELS_INSTRUCTION_SET_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planc::host {

// The instruction sets that kernels are written for, from the smallest to the largest; each
// includes those before it. X(enumerator, name, class of bits, what the CPU must have):
// two sets of one class give the same bits for the same job. What is computed in fp32 has the bits
// of class "vector" on every set; see docs/reproducibility.md.
#define PLANC_INSTRUCTION_SETS(X)                                \
  X(kAvx2, "avx2", "vector", "AVX2 and FMA (x86-64-v3)")         \
  X(kAvx512, "avx512", "vector", "AVX-512 F, VL, DQ, BW and CD") \
  X(kAmxBf16, "amx_bf16", "amx_bf16",                            \
    "AVX-512 with bf16, and AMX tiles with bf16, which the "     \
    "operating system must permit")

enum class InstructionSet {
#define PLANC_INSTRUCTION_SET_ENUMERATOR(enumerator, name, bits, needs) enumerator,
  PLANC_INSTRUCTION_SETS(PLANC_INSTRUCTION_SET_ENUMERATOR)
#undef PLANC_INSTRUCTION_SET_ENUMERATOR
};

// "avx2", as on the command line, in reports and in manifests.
const char* InstructionSetName(InstructionSet set);
// The class of bits that a job which computes in bf16 has on `set`.
const char* InstructionSetBits(InstructionSet set);
// What a CPU must have for `set`, for messages.
const char* InstructionSetNeeds(InstructionSet set);
// The set of this name; null where there is none.
std::optional<InstructionSet> FindInstructionSet(const std::string& name);
// "avx2, avx512, amx_bf16".
std::string InstructionSetNames();

// The largest set that this machine's CPU and operating system offer to this process. Asks Linux
// for the use of AMX tiles where the CPU has them: permission is the process's, once for all its
// threads, and a set that is not granted is not offered.
// Errors: FailedPrecondition where the CPU lacks even the smallest set.
absl::StatusOr<InstructionSet> DetectInstructionSet();

// All sets up to `largest`, in order of size.
std::vector<InstructionSet> InstructionSetsUpTo(InstructionSet largest);

// From here on the vector kernels of this process use no larger vectors than `set` has, in every
// thread. Their results are the same on every set; this is for reproducing a run of another machine
// down to its instructions, and for tests.
// REQUIRES: a set that DetectInstructionSet offers; no kernel is running.
void UseVectorsOf(InstructionSet set);

}  // namespace planc::host

#endif  // PLANC_KERNELS_INSTRUCTION_SET_H_
