#include "runtime/owned_run.h"

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/test_plan.h"
#include "schemas/exit_code.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

class OwnedRunTest : public ::testing::Test {
 protected:
  OwnedRunTest() : plan_(CheckpointTestPlan(1, 1, 1, 1)) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    request_.base_directory = ::testing::TempDir() + "/owned-" + test->name();
    std::filesystem::remove_all(request_.base_directory);
    plan_.job.set_job("test");
    plan_.job.mutable_run()->set_directory("run");
    plan_.job.mutable_run()->set_steps(10);
    plan_.job.mutable_checkpoint()->set_directory("saved");
    plan_.job.mutable_checkpoint()->set_resume("auto");
  }

  // Starts the run, which ends by `fault`; the exit code.
  int64_t CodeOfStart(const RunFault& fault) {
    const absl::StatusOr<std::unique_ptr<OwnedRun>> run = OwnedRun::Begin(plan_, request_);
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return -1;
    const int64_t code =
        fault.code == 0 ? int64_t{kExitStopped} : (*run)->CodeAfter(fault, &notice_);
    EXPECT_TRUE((*run)->End(code).ok());
    return code;
  }

  Plan plan_;
  RunRequest request_;
  std::string notice_;
};

RunFault KilledIn(int64_t step) {
  RunFault fault;
  fault.step = step;
  fault.code = kExitPeerLost;
  fault.signal = SIGSEGV;
  return fault;
}

// What a scheduler sees that starts the run again after each 7.
TEST_F(OwnedRunTest, AFaultThatRepeatsFromStartToStartStopsAskingForMore) {
  EXPECT_EQ(CodeOfStart(KilledIn(4)), kExitPeerLost);
  EXPECT_EQ(CodeOfStart(KilledIn(4)), kExitPeerLost);
  EXPECT_EQ(notice_, "");
  EXPECT_EQ(CodeOfStart(KilledIn(4)), 128 + SIGSEGV);
  EXPECT_THAT(notice_, HasSubstr("3 times in a row"));
}

TEST_F(OwnedRunTest, FaultsInOtherStepsAreOthers) {
  for (int64_t step = 1; step < 8; ++step) {
    EXPECT_EQ(CodeOfStart(KilledIn(step)), kExitPeerLost);
  }
}

TEST_F(OwnedRunTest, AStopInBetweenCountsFromTheStart) {
  CodeOfStart(KilledIn(4));
  CodeOfStart(KilledIn(4));
  EXPECT_EQ(CodeOfStart(RunFault()), kExitStopped);
  EXPECT_EQ(CodeOfStart(KilledIn(4)), kExitPeerLost);
}

TEST_F(OwnedRunTest, WantOfMemoryIsThreeTheSecondTime) {
  RunFault killed = KilledIn(0);
  killed.signal = SIGKILL;
  killed.out_of_memory = true;
  EXPECT_EQ(CodeOfStart(killed), kExitPeerLost);
  EXPECT_EQ(CodeOfStart(killed), kExitDoesNotFit);
}

}  // namespace
}  // namespace planc
