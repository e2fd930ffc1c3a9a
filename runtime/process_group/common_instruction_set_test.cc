#include "runtime/process_group/common_instruction_set.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/instruction_set.h"
#include "runtime/process_group/memory_store.h"

namespace planc {
namespace {

using host::InstructionSet;
using ::testing::HasSubstr;

// What each rank learns when rank i offers own[i], one thread per rank.
std::vector<absl::StatusOr<CommonInstructionSet>> Agree(const std::vector<InstructionSet>& own) {
  const auto store = std::make_shared<MemoryStore>();
  const auto ranks = static_cast<int64_t>(own.size());
  std::vector<absl::StatusOr<CommonInstructionSet>> results(own.size());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Control control(store, "job.0", rank, ranks, absl::Seconds(30));
      results[rank] = AgreeOnInstructionSet(own[rank], &control);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(CommonInstructionSetTest, OneSetNeedsNoWord) {
  for (const auto& result : Agree({InstructionSet::kAvx512, InstructionSet::kAvx512})) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->set, InstructionSet::kAvx512);
    EXPECT_EQ(result->notice, "");
  }
}

TEST(CommonInstructionSetTest, TheSmallestIsTakenAndNamed) {
  for (const auto& result :
       Agree({InstructionSet::kAmxBf16, InstructionSet::kAvx2, InstructionSet::kAvx512,
              InstructionSet::kAvx2, InstructionSet::kAmxBf16})) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->set, InstructionSet::kAvx2);
    EXPECT_EQ(result->notice,
              "the job runs on instruction set avx2, ranks 1, 3 have no larger one; rank 2 has "
              "avx512; ranks 0, 4 have amx_bf16");
  }
}

// A later planc may know sets that this one does not.
TEST(CommonInstructionSetTest, AnUnknownSetEndsAllRanks) {
  const auto store = std::make_shared<MemoryStore>();
  absl::StatusOr<CommonInstructionSet> result;
  std::thread other([&] {
    Control control(store, "job.0", 1, 2, absl::Seconds(30));
    ASSERT_TRUE(control.Gather("instruction set", "avx1024").ok());
    const auto told = control.Broadcast("instruction set", "");
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_THAT(*told, HasSubstr("rank 1 has `avx1024`"));
  });
  Control control(store, "job.0", 0, 2, absl::Seconds(30));
  result = AgreeOnInstructionSet(InstructionSet::kAvx2, &control);
  other.join();
  ASSERT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("rank 1 has `avx1024`"));
}

}  // namespace
}  // namespace planc
