// Real runs whose numbers, memory or disk go bad: nothing poisoned is saved, nothing good is lost.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"
#include "tests/started_run.h"

namespace planc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Folder() {
  std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '_');
  return absl::StrCat(::testing::TempDir(), "/poison_", name);
}

using Words = std::vector<std::string>;

// `planc run job.yaml` with these settings.
Words RunWith(const Words& sets) {
  Words words = {"run", "job.yaml"};
  for (const std::string& set : sets) {
    words.emplace_back("--set");
    words.push_back(set);
  }
  return words;
}

Words Plus(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A rate that makes every weight infinite or NaN.
const Words kExplosion = {"optimizer.lr=1e39", "checkpoint.allow_changes=[optimizer.lr]"};

TEST(PoisonTest, AStateThatTheLastUpdateMadeNonFiniteIsNotSaved) {
  for (const int ranks : {1, 4}) {
    for (const std::string async : {"false", "true"}) {
      StartedRun run(Folder(), ranks, ranks == 1 ? "" : "dp_replicate: 2, tp: 2",
                     "steps: 3, restarts: 0", "");
      const Words sets = {"checkpoint.keep=1", "data.validation=[]", "checkpoint.async=" + async};
      ASSERT_EQ(run.Run(Plus(RunWith(sets), {"--steps=2"})), 0) << run.Output();
      EXPECT_EQ(run.Run(RunWith(Plus(sets, kExplosion))), 6) << run.Output();
      EXPECT_THAT(run.Output(),
                  AllOf(HasSubstr("the training state after step 3 is not finite, and is not "
                                  "saved"),
                        HasSubstr("rank-00000.safetensors: tensor model."), HasSubstr("element ["),
                        HasSubstr("failed after step 3 of 3, exit code 6")));
      EXPECT_EQ(run.StepsSaved(), 2) << run.Output();
      // What was good goes on.
      EXPECT_EQ(run.Run({"checkpoint", "verify", "saved"}), 0) << run.Output();
      EXPECT_EQ(run.Run(RunWith(sets)), 0) << run.Output();
      EXPECT_EQ(run.StepsSaved(), 3);
    }
  }
}

TEST(PoisonTest, AValidationLossThatIsNotFiniteIsSix) {
  StartedRun run(Folder(), 2, "tp: 2", "steps: 3, restarts: 0", "");
  ASSERT_EQ(run.Run({"run", "job.yaml", "--steps=2"}), 0) << run.Output();
  EXPECT_EQ(run.Run(RunWith(kExplosion)), 6) << run.Output();
  EXPECT_THAT(run.Output(), HasSubstr("after step 3: validation loss is nan"));
  EXPECT_EQ(run.StepsSaved(), 2);
}

TEST(PoisonTest, APlaceForCheckpointsThatCannotBeUsedIsFoundBeforeTheFirstStep) {
  for (const int ranks : {1, 2}) {
    StartedRun run(Folder(), ranks, ranks == 1 ? "" : "dp_shard: 2", "steps: 3, restarts: 0", "");
    std::ofstream(run.folder() + "/saved") << "a file";
    EXPECT_EQ(run.Run({"run", "job.yaml"}), 2);
    EXPECT_THAT(run.Output(),
                HasSubstr("checkpoint.directory: ./saved: cannot create: File exists"));
    EXPECT_EQ(run.RowsOfMetrics(), 0);
    std::filesystem::remove(run.folder() + "/saved");
    // It is left as it was found.
    EXPECT_EQ(run.Run({"run", "job.yaml"}), 0) << run.Output();
    EXPECT_FALSE(std::filesystem::exists(run.folder() + "/saved/probe"));
  }
}

// From where a process of a run may write no file of the size of a checkpoint's; RLIM_INFINITY
// takes that back.
void LimitFiles(const StartedRun& run, rlim_t bytes) {
  std::vector<pid_t> processes = RanksOf(run.process());
  if (processes.empty()) processes.push_back(run.process());
  for (const pid_t process : processes) {
    rlimit limit{};
    ASSERT_EQ(prlimit(process, RLIMIT_FSIZE, nullptr, &limit), 0);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    ASSERT_EQ(prlimit(process, RLIMIT_FSIZE, &limit, nullptr), 0);
  }
}
constexpr rlim_t kLessThanACheckpoint = 100 << 10;

// Of so many ranks, with checkpoint.async or without.
class RefusingDiskTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  RefusingDiskTest()
      : async_(std::get<1>(GetParam())),
        run_(Folder() + (async_ ? "async" : ""), std::get<0>(GetParam()),
             std::get<0>(GetParam()) == 1 ? "" : "dp_shard: 2", "steps: 1000000, restarts: 0", "") {
  }

  // Until a checkpoint is saved; then the disk refuses others. `most`: max_failed_saves.
  void StartAndRefuse(const std::string& most) {
    run_.Start(RunWith({"checkpoint.every_steps=1", "checkpoint.max_failed_saves=" + most,
                        absl::StrCat("checkpoint.async=", async_ ? "true" : "false")}));
    ASSERT_TRUE(run_.Await([&] { return run_.StepsSaved() >= 1; })) << run_.Output();
    LimitFiles(run_, kLessThanACheckpoint);
  }
  void AwaitAFailure() {
    ASSERT_TRUE(run_.Await([&] { return absl::StrContains(run_.Output(), "File too large"); }))
        << run_.Output();
  }

  const bool async_;
  StartedRun run_;
};

TEST_P(RefusingDiskTest, AfterSomeSavesInARowTheRunStops) {
  StartAndRefuse("3");
  EXPECT_EQ(run_.ExitCode(), 2) << run_.Output();
  EXPECT_THAT(
      run_.Output(),
      HasSubstr("the last 3 saves failed, as many as checkpoint.max_failed_saves allows: "));
  EXPECT_GE(run_.StepsSaved(), 1);
}

TEST_P(RefusingDiskTest, OneThatSucceedsCountsAnew) {
  StartAndRefuse("0");
  AwaitAFailure();
  LimitFiles(run_, RLIM_INFINITY);
  const int64_t saved = run_.StepsSaved();
  ASSERT_TRUE(run_.Await([&] { return run_.StepsSaved() > saved + 1; })) << run_.Output();
  kill(run_.process(), SIGTERM);
  EXPECT_EQ(run_.ExitCode(), 8) << run_.Output();
  EXPECT_EQ(run_.StepsSaved(), run_.RowsOfMetrics());
  const auto rows = ReadMetrics(run_.folder() + "/run/metrics.jsonl");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(std::any_of(rows->begin(), rows->end(),
                          [](const StepMetrics& row) { return row.checkpoint_error.has_value(); }));
}

TEST_P(RefusingDiskTest, TheLastOneMustSucceed) {
  StartAndRefuse("0");
  AwaitAFailure();
  kill(run_.process(), SIGTERM);
  EXPECT_EQ(run_.ExitCode(), 2) << run_.Output();
}

INSTANTIATE_TEST_SUITE_P(Ranks, RefusingDiskTest,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

// Places in the private memory of a process where these bytes lie.
std::vector<off_t> PlacesOf(pid_t process, const std::string& bytes) {
  std::vector<off_t> places;
  const int memory = open(absl::StrCat("/proc/", process, "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  std::istringstream maps(ReadText(absl::StrCat("/proc/", process, "/maps")));
  for (std::string line; std::getline(maps, line);) {
    uintmax_t begin = 0;
    uintmax_t end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNxMAX "-%" SCNxMAX " %4s", &begin, &end, access) != 3) {
      continue;
    }
    if (std::string(access) != "rw-p") continue;
    std::string content(end - begin, '\0');
    const ssize_t got = pread(memory, content.data(), content.size(), static_cast<off_t>(begin));
    content.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    for (size_t at = content.find(bytes); at != std::string::npos;
         at = content.find(bytes, at + 1)) {
      places.push_back(static_cast<off_t>(begin + at));
    }
  }
  close(memory);
  return places;
}

// Bytes of one rank's master weights are overwritten from outside, as a stray pointer, a broken
// memory or another program would. The rate is too low to change a weight, so that they can be
// found.
TEST(PoisonTest, OverwrittenBytesOfOneReplicaEndTheRunAndNameIt) {
  StartedRun run(Folder(), 4, "dp_replicate: 4", "steps: 1000000, restarts: 0", "");
  const Words sets = {"optimizer.lr=1e-30", "run.compare_every_steps=2"};
  ASSERT_EQ(run.Run(Plus(RunWith(sets), {"--steps=1"})), 0) << run.Output();
  const std::string tensor = "model.layers.1.mlp.up_proj.weight";
  const auto file =
      SafetensorsFile::Open(run.folder() + "/saved/step-00000001/rank-00000.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const SafetensorsFile::Tensor& saved = file->tensors().at(tensor + ".master.0");
  const std::string bytes(saved.data, static_cast<size_t>(saved.bytes));

  run.Start(RunWith(sets));
  ASSERT_TRUE(run.Await([&] { return run.RowsOfMetrics() >= 4; })) << run.Output();
  ASSERT_EQ(RanksOf(run.process()).size(), 4u);
  const pid_t rank = RanksOf(run.process())[2];
  const int memory = open(absl::StrCat("/proc/", rank, "/mem").c_str(), O_WRONLY | O_CLOEXEC);
  if (memory < 0 && (errno == EPERM || errno == EACCES)) {
    GTEST_SKIP() << "this system lets nobody write into another process";
  }
  const std::vector<off_t> places = PlacesOf(rank, bytes);
  ASSERT_FALSE(places.empty());
  const float value = 0.25f;
  // An update that reads before and writes after it would undo it once.
  run.Await([&] {
    for (const off_t place : places) {
      [[maybe_unused]] const ssize_t written = pwrite(memory, &value, sizeof(value), place + 40);
    }
    return false;
  });
  close(memory);
  EXPECT_EQ(run.ExitCode(), 6) << run.Output();
  EXPECT_THAT(run.Output(), AllOf(HasSubstr("replicas are not the same: rank 2 (on "),
                                  HasSubstr(absl::StrCat("has another master of ", tensor,
                                                         " than ranks 0, 1, 3, which agree"))));
  EXPECT_EQ(run.StepsSaved(), 1) << "nothing of it was saved";
}

}  // namespace
}  // namespace planc
