#include "runtime/process_group/control.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/memory_store.h"

namespace planc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Calls `body` with each rank's Control, one thread per rank.
void RunRanks(int64_t world_size, absl::Duration timeout,
              const std::function<void(Control*)>& body) {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      Control control(store, "job.0", rank, world_size, timeout);
      body(&control);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ControlTest, GatherAndBroadcastRepeatedly) {
  RunRanks(4, absl::Seconds(30), [](Control* control) {
    for (int round = 0; round < 3; ++round) {
      const auto values = control->Gather("x", absl::StrCat(round, "-", control->rank()));
      ASSERT_TRUE(values.ok()) << values.status();
      if (control->rank() == 0) {
        EXPECT_THAT(*values, ElementsAre(absl::StrCat(round, "-0"), absl::StrCat(round, "-1"),
                                         absl::StrCat(round, "-2"), absl::StrCat(round, "-3")));
      } else {
        EXPECT_THAT(*values, IsEmpty());
      }
      EXPECT_EQ(*control->Broadcast("x", control->rank() == 0 ? absl::StrCat("r", round) : ""),
                absl::StrCat("r", round));
    }
  });
}

TEST(ControlTest, BarrierWaitsForAll) {
  std::atomic<int> arrived{0};
  RunRanks(5, absl::Seconds(30), [&](Control* control) {
    for (int round = 1; round <= 3; ++round) {
      ++arrived;
      ASSERT_TRUE(control->Barrier("checkpoint").ok());
      EXPECT_GE(arrived, 5 * round);
    }
  });
}

TEST(ControlTest, EveryRankLearnsWhoDidNotCome) {
  RunRanks(4, absl::Milliseconds(100), [](Control* control) {
    if (control->rank() == 2) return;
    const absl::Status status = control->Barrier("checkpoint");
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 did not reach \"checkpoint\""));
  });
}

TEST(ControlTest, AgreementNamesTheRanksThatDiffer) {
  RunRanks(4, absl::Seconds(30), [](Control* control) {
    EXPECT_TRUE(control->AgreeOn("plan hash", "abc").ok());
    const absl::Status status =
        control->AgreeOn("plan hash", control->rank() % 2 == 0 ? "abc" : "def");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("disagree on the plan hash: rank 0 has abc, ranks 1, 3 have def"));
  });
}

TEST(ControlTest, OneRankAsOfTheJob) {
  Control control(nullptr, "job.0", 0, 1, absl::Seconds(1));
  EXPECT_THAT(*control.Gather("x", "v"), ElementsAre("v"));
  EXPECT_EQ(*control.Broadcast("x", "v"), "v");
  EXPECT_TRUE(control.Barrier("b").ok());
  EXPECT_TRUE(control.AgreeOn("hash", "h").ok());
  EXPECT_FALSE(*control.ShouldStop(0, false));
  EXPECT_TRUE(*control.ShouldStop(1, true));
}

// Whoever is asked to stop, all ranks stop after the same step. The barrier stands for the
// all-reduce of the loss that ends every step.
TEST(ControlTest, AllRanksStopAfterTheSameStep) {
  for (const int64_t asked : {0, 1, 3}) {
    std::vector<int64_t> last_step(4, -1);
    RunRanks(4, absl::Seconds(30), [&](Control* control) {
      for (int64_t step = 0; step < 20; ++step) {
        ASSERT_TRUE(control->Barrier("loss").ok());
        const bool requested = control->rank() == asked && step >= 5;
        const absl::StatusOr<bool> stop = control->ShouldStop(step, requested);
        ASSERT_TRUE(stop.ok()) << stop.status();
        last_step[control->rank()] = step;
        if (*stop) break;
      }
    });
    EXPECT_GE(last_step[0], 5);
    EXPECT_LE(last_step[0], 7);
    EXPECT_THAT(last_step, ::testing::Each(last_step[0])) << "rank " << asked << " was asked";
  }
}

// A rank that has gone wrong, or another program with the same keys.
TEST(ControlTest, AStopThatCannotBeIsAnErrorNotAHang) {
  for (const char* announced : {"4 x", "7", "x", "", " 5", "-1 x", "99999999999999999999 x"}) {
    const auto store = std::make_shared<MemoryStore>();
    ASSERT_TRUE(store->Set("job/control/stop/step", announced).ok());
    Control control(store, "job", 1, 2, absl::Seconds(30));
    EXPECT_TRUE(absl::IsInternal(control.ShouldStop(5, false).status())) << announced;
  }
  for (const char* announced : {"5 why", "6 why"}) {
    const auto store = std::make_shared<MemoryStore>();
    ASSERT_TRUE(store->Set("job/control/stop/step", announced).ok());
    Control control(store, "job", 1, 2, absl::Seconds(30));
    EXPECT_EQ(*control.ShouldStop(5, false), announced[0] == '5');
    EXPECT_EQ(control.stop_reason(), "why");
  }
}

}  // namespace
}  // namespace planc
