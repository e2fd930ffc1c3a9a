#include "runtime/checkpoint/checkpointer.h"

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/control_agreement.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "runtime/process_group/cancellable_store.h"
#include "runtime/process_group/control.h"
#include "runtime/process_group/memory_store.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The host's file system, whose files can be held back or refused.
class GatedFileSystem : public HostFileSystem {
 public:
  int Create(const std::string& path) const override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
    if (!refused_.empty() && path.find(refused_) != std::string::npos) return -ENOSPC;
    return HostFileSystem::Create(path);
  }
  void SetOpen(bool open) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void Refuse(const std::string& part) {
    const std::lock_guard<std::mutex> lock(mutex_);
    refused_ = part;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool open_ = true;
  std::string refused_;  // part of the paths that cannot be created
};

// One rank's checkpointer with what it needs, agreeing over a shared store.
class Rank {
 public:
  Rank(const Plan& plan, int64_t rank, const std::string& directory,
       const std::shared_ptr<MemoryStore>& store, const FileSystem* files)
      : plan_(plan),
        rank_(rank),
        shards_(plan, rank),
        store_(std::make_shared<CancellableStore>(store)),
        control_(store_, "test", rank, plan.mesh.WorldSize(), absl::Minutes(5)),
        agreement_(&control_, [this] { store_->Cancel(); }) {
    SaveOptions options;
    options.files = files;
    checkpointer_ = std::make_unique<Checkpointer>(plan, rank, 2, shards_.Views(), directory,
                                                   agreement_, options);
  }

  void SetState(int salt) {
    VisitState(plan_, TpOf(plan_, rank_), shards_.Views(), salt,
               [](float& value, float expected) { value = expected; });
  }
  void Poison() { shards_.Views().front().v[0] = std::numeric_limits<float>::infinity(); }
  Checkpointer& checkpointer() { return *checkpointer_; }
  void Abandon() { checkpointer_.reset(); }

 private:
  const Plan& plan_;
  const int64_t rank_;
  TestShards shards_;
  const std::shared_ptr<CancellableStore> store_;
  Control control_;
  ControlAgreement agreement_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

class CheckpointerTest : public testing::Test {
 protected:
  CheckpointerTest() {
    directory_ = testing::TempDir() + "checkpointer_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  std::string PathOf(int64_t step) const { return directory_ + "/" + CheckpointName(step); }

  static Plan PlanOf(bool async) {
    Plan plan = CheckpointTestPlan(1, 1, 2, 2);
    plan.job.mutable_checkpoint()->set_async(async);
    return plan;
  }

  std::vector<std::unique_ptr<Rank>> Ranks(const Plan& plan, int64_t count) {
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int64_t rank = 0; rank < count; ++rank) {
      ranks.push_back(std::make_unique<Rank>(plan, rank, directory_, store_, &files_));
    }
    return ranks;
  }

  // On a thread for each rank.
  static void OnEach(std::vector<std::unique_ptr<Rank>>& ranks,
                     const std::function<void(Rank&)>& body) {
    std::vector<std::thread> threads;
    for (std::unique_ptr<Rank>& rank : ranks) threads.emplace_back([&] { body(*rank); });
    for (std::thread& thread : threads) thread.join();
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  GatedFileSystem files_;
  std::string directory_;
};

TEST_F(CheckpointerTest, TrainingGoesOnWhileTheSnapshotIsWritten) {
  const Plan plan = PlanOf(true);
  std::vector<std::unique_ptr<Rank>> ranks = Ranks(plan, 4);
  files_.SetOpen(false);
  OnEach(ranks, [](Rank& rank) {
    rank.SetState(1);
    EXPECT_TRUE(rank.checkpointer().Save(5).ok());
    rank.SetState(2);  // the next step
    EXPECT_TRUE(rank.checkpointer().TakeEnded().empty());
  });
  EXPECT_FALSE(fs::exists(PathOf(5)));
  files_.SetOpen(true);
  OnEach(ranks, [](Rank& rank) {
    EXPECT_TRUE(rank.checkpointer().Save(6).ok());  // waits for the one before
    EXPECT_EQ(rank.checkpointer().TakeEnded().front().step, 5);
    EXPECT_TRUE(rank.checkpointer().Finish().ok());
    const std::vector<SaveResult> ended = rank.checkpointer().TakeEnded();
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].step, 6);
    EXPECT_TRUE(ended[0].status.ok());
  });
  EXPECT_TRUE(LoadState(plan, PathOf(5), 1).ok()) << LoadState(plan, PathOf(5), 1);
  EXPECT_TRUE(LoadState(plan, PathOf(6), 2).ok()) << LoadState(plan, PathOf(6), 2);
}

TEST_F(CheckpointerTest, AFailedSaveIsToldOnAllRanksAndTheNextOneTriesAgain) {
  for (const bool async : {false, true}) {
    fs::remove_all(directory_);
    const Plan plan = PlanOf(async);
    store_ = std::make_shared<MemoryStore>();
    std::vector<std::unique_ptr<Rank>> ranks = Ranks(plan, 4);
    files_.Refuse("rank-00002");
    OnEach(ranks, [&](Rank& rank) {
      rank.SetState(1);
      EXPECT_TRUE(rank.checkpointer().Save(5).ok()) << "the run goes on";
      const absl::Status status = rank.checkpointer().Finish();
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_EQ(
          status.message(),
          absl::StrCat("rank 2: ", PathOf(5),
                       ".tmp/rank-00002.safetensors: cannot create: No space left on device"));
      EXPECT_EQ(rank.checkpointer().TakeEnded().front().status, status);
    });
    EXPECT_TRUE(fs::is_empty(directory_));
    files_.Refuse("");
    OnEach(ranks, [](Rank& rank) {
      rank.SetState(2);
      EXPECT_TRUE(rank.checkpointer().Save(6).ok());
      EXPECT_TRUE(rank.checkpointer().Finish().ok());
    });
    EXPECT_TRUE(LoadState(plan, PathOf(6), 2).ok());
  }
}

TEST_F(CheckpointerTest, AsManyFailuresInARowAsAllowedEndTheRun) {
  for (const bool async : {false, true}) {
    fs::remove_all(directory_);
    Plan plan = PlanOf(async);
    plan.job.mutable_checkpoint()->set_max_failed_saves(2);
    store_ = std::make_shared<MemoryStore>();
    std::vector<std::unique_ptr<Rank>> ranks = Ranks(plan, 4);
    const auto save = [&](int64_t step, const std::string& refused, bool ends) {
      files_.Refuse(refused);
      OnEach(ranks, [&](Rank& rank) {
        rank.SetState(1);
        absl::Status saved = rank.checkpointer().Save(step).status();
        if (async) rank.checkpointer().Finish().IgnoreError();
        // In the background it is known when the next one would begin.
        if (async && ends) saved = rank.checkpointer().Save(step + 1).status();
        EXPECT_EQ(saved.ok(), !ends) << step << ": " << saved;
        if (!ends) return;
        EXPECT_EQ(saved.code(), absl::StatusCode::kInternal);
        EXPECT_THAT(std::string(saved.message()),
                    AllOf(HasSubstr("the last 2 saves failed"), HasSubstr("checkpoint.max_failed_"),
                          HasSubstr("rank 2: "), HasSubstr("No space left on device")));
      });
    };
    save(1, "rank-00002", false);
    save(2, "", false);  // counts anew
    save(3, "rank-00002", false);
    save(4, "rank-00002", true);
  }
}

TEST_F(CheckpointerTest, AStateThatIsNotFiniteEndsTheRun) {
  for (const bool async : {false, true}) {
    fs::remove_all(directory_);
    const Plan plan = PlanOf(async);
    store_ = std::make_shared<MemoryStore>();
    std::vector<std::unique_ptr<Rank>> ranks = Ranks(plan, 4);
    OnEach(ranks, [&](Rank& rank) {
      rank.SetState(1);
      if (&rank == ranks[1].get()) rank.Poison();
      absl::Status saved = rank.checkpointer().Save(5).status();
      if (async) {
        EXPECT_TRUE(saved.ok()) << saved;
        saved = rank.checkpointer().Save(6).status();
      }
      EXPECT_EQ(saved.code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(saved.message()),
                  HasSubstr("rank 1: the training state after step 5"));
      EXPECT_EQ(rank.checkpointer().Finish(), saved);
    });
    EXPECT_TRUE(ListCheckpoints(directory_).empty());
  }
}

TEST_F(CheckpointerTest, ALostRankDoesNotHoldTheOthers) {
  const Plan plan = PlanOf(true);
  std::vector<std::unique_ptr<Rank>> ranks = Ranks(plan, 3);  // the fourth is lost
  OnEach(ranks, [](Rank& rank) {
    rank.SetState(1);
    EXPECT_TRUE(rank.checkpointer().Save(5).ok());
    const absl::Time begin = absl::Now();
    rank.Abandon();
    EXPECT_LT(absl::Now() - begin, absl::Minutes(1)) << "far below the timeout of agreements";
  });
  EXPECT_TRUE(ListCheckpoints(directory_).empty());
}

}  // namespace
}  // namespace planc
