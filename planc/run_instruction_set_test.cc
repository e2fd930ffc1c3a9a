#include "planc/run_instruction_set.h"

#include <string>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/command_table.h"

namespace planc {
namespace {

using host::InstructionSet;
using ::testing::HasSubstr;

TEST(RunInstructionSetTest, AllThatTheMachineHasUnlessLessIsAsked) {
  EXPECT_EQ(*ChooseInstructionSet("", InstructionSet::kAvx512), InstructionSet::kAvx512);
  EXPECT_EQ(*ChooseInstructionSet("avx2", InstructionSet::kAvx512), InstructionSet::kAvx2);
  EXPECT_EQ(*ChooseInstructionSet("avx512", InstructionSet::kAvx512), InstructionSet::kAvx512);
}

TEST(RunInstructionSetTest, WhatTheMachineLacksIsRefused) {
  const auto lacking = ChooseInstructionSet("amx_bf16", InstructionSet::kAvx2);
  EXPECT_EQ(lacking.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lacking.status().message()),
              HasSubstr("AMX tiles with bf16, which the operating system must permit; the largest "
                        "set that it has is avx2"));
  const auto unknown = ChooseInstructionSet("sse4", InstructionSet::kAvx2);
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("`sse4` is none of avx2, avx512, amx_bf16"));
}

TEST(RunInstructionSetTest, TheFlagOffersTheSetsThatThereAre) {
  for (const CommandInfo& command : AllCommands()) {
    if (std::string(command.name) != "run") continue;
    for (const FlagInfo& flag : command.flags) {
      if (std::string(flag.name) != "--instruction-set") continue;
      const std::string values(flag.value);
      EXPECT_EQ(absl::StrJoin(absl::StrSplit(values, '|'), ", "), host::InstructionSetNames());
      return;
    }
  }
  FAIL() << "planc run has no such flag";
}

}  // namespace
}  // namespace planc
