// The main function of the kernels' tests: runs them once for every instruction set that the
// machine has, from the smallest on, each in a process of its own (oneDNN's limit can be set only
// once), up to the first set that fails. The report is that of the last process; its root names the
// sets that ran (instruction_sets), which ./run_tests shows.
//
//   --instruction_set=NAME  this set alone
//   --bits=NAME             only sets of this class of bits; where the machine has none, its
//   largest
//                           set, on which such a test skips itself
//   --seed_factor=N         property tests run N times as many cases
#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "hwy/highway.h"
#include "kernels/instruction_set.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

constexpr char kSetFlag[] = "--instruction_set=";
constexpr char kBitsFlag[] = "--bits=";
constexpr char kFactorFlag[] = "--seed_factor=";

// The sets to test up to `largest`, of the class `bits` unless that is empty: not AVX-512 where,
// for a sanitizer, vector kernels were compiled for AVX2 alone.
std::vector<InstructionSet> SetsToTest(InstructionSet largest, const std::string& bits) {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : InstructionSetsUpTo(largest)) {
    if (set == InstructionSet::kAvx512 && (HWY_TARGETS & HWY_AVX3) == 0) continue;
    if (bits.empty() || bits == InstructionSetBits(set)) sets.push_back(set);
  }
  return sets;
}

// Names the sets that have been tested when this process passes.
class SetsInReport : public testing::Environment {
 public:
  explicit SetsInReport(std::string bits) : bits_(std::move(bits)) {}
  void SetUp() override {
    std::vector<std::string> names;
    for (const InstructionSet set : SetsToTest(TestedInstructionSet(), bits_)) {
      names.push_back(InstructionSetName(set));
    }
    testing::Test::RecordProperty("instruction_sets", absl::StrJoin(names, " "));
  }

 private:
  const std::string bits_;
};

bool LimitOneDnn(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx2:
      return dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) == dnnl_success;
    case InstructionSet::kAvx512:
      return dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core) == dnnl_success;
    case InstructionSet::kAmxBf16:
      return true;
  }
  return false;
}

// Runs this program again for one set; its exit status.
int RunFor(InstructionSet set, std::vector<std::string> arguments) {
  std::cout << "instruction set " << InstructionSetName(set) << std::endl;
  arguments.push_back(absl::StrCat(kSetFlag, InstructionSetName(set)));
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execv("/proc/self/exe", pointers.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int Main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  testing::InitGoogleTest(&argc, argv);
  const absl::StatusOr<InstructionSet> largest = DetectInstructionSet();
  if (!largest.ok()) {
    std::cerr << largest.status() << "\n";
    return 1;
  }
  std::optional<InstructionSet> only;
  std::string bits;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (absl::StartsWith(argument, kSetFlag)) {
      only = FindInstructionSet(argument.substr(sizeof(kSetFlag) - 1));
      if (only.has_value() && *only <= *largest) continue;
    } else if (absl::StartsWith(argument, kBitsFlag)) {
      bits = argument.substr(sizeof(kBitsFlag) - 1);
      continue;
    } else if (absl::StartsWith(argument, kFactorFlag) &&
               absl::SimpleAtoi(argument.substr(sizeof(kFactorFlag) - 1),
                                &TestOptions().seed_factor)) {
      continue;
    }
    std::cerr << argument << ": not an argument of this test, or not a set of this machine\n";
    return 1;
  }
  if (!only.has_value()) {
    std::vector<InstructionSet> sets = SetsToTest(*largest, bits);
    if (sets.empty()) sets.push_back(*largest);
    for (const InstructionSet set : sets) {
      const int status = RunFor(set, arguments);
      if (status != 0) return status;
    }
    return 0;
  }
  TestOptions().instruction_set = *only;
  UseVectorsOf(*only);
  if (!LimitOneDnn(*only)) {
    std::cerr << "oneDNN refuses the limit\n";
    return 1;
  }
  testing::AddGlobalTestEnvironment(new SetsInReport(bits));
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace planc::host

int main(int argc, char** argv) { return planc::host::Main(argc, argv); }
