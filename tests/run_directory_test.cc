// Runs and their directories through the command line: what is started twice, changed, mixed up or
// killed either goes on as the same run or is refused, and no file is lost.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"(job: kept
model: {family: gpt2, layers: 1, hidden: 32, heads: 4, ffn_hidden: 64, vocab: 259, max_sequence: 32}
cluster: {nodes: 1, gpus_per_node: 1, device: host}
batch: {global: 4, micro: 1, sequence: 32}
precision: {compute: fp32}
optimizer: {lr: 3e-3}
lr_schedule: {decay: constant}
data: {train: [train.txt], format: bytes}
checkpoint: {directory: saved, every_steps: 2, keep: 2}
run: {steps: 6, directory: run, restarts: 0}
)";
constexpr char kTwoRanks[] = " --set cluster.gpus_per_node=2 --set mesh.dp_shard=2";

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() {
    folder_ = absl::StrCat(::testing::TempDir(), "/run_directory_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ + "/train.txt") << LearnableText(5000);
    std::ofstream(folder_ + "/other.txt") << LearnableText(6000);
    std::ofstream(folder_ + "/job.yaml") << kJob;
  }
  ~RunDirectoryTest() override {
    if (started_ > 0) {
      kill(started_, SIGKILL);
      waitpid(started_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  std::string Job() const { return folder_ + "/job.yaml"; }

  // Runs planc; what it prints goes to output_, with line breaks as blanks. Returns its exit code.
  int Planc(const std::string& arguments) {
    const std::string log = folder_ + "/log";
    const int status =
        std::system(absl::StrCat("planc/planc ", arguments, " > ", log, " 2>&1").c_str());
    const std::vector<std::string> words =
        absl::StrSplit(ReadText(log), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    output_ = absl::StrJoin(words, " ");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int Run(const std::string& arguments = "") { return Planc("run " + Job() + " " + arguments); }

  // Starts planc in the background.
  pid_t Start(const std::vector<std::string>& arguments, const std::string& log) const {
    std::vector<std::string> words = {"planc"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const pid_t process = fork();
    if (process != 0) return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = open((folder_ + "/" + log).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execv("planc/planc", pointers.data());
    _exit(127);
  }
  static int CodeOf(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Starts an endless run and waits until it has done `steps`.
  void StartEndless(int64_t steps) {
    started_ =
        Start({"run", Job(), "--set", "run.steps=1000000", "--set", "checkpoint.every_steps=5"},
              "endless");
    while (static_cast<int64_t>(Steps().size()) < steps) {
      ASSERT_EQ(waitpid(started_, nullptr, WNOHANG), 0) << ReadText(folder_ + "/endless");
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  std::vector<StepMetrics> Metrics(const std::string& name = "run/metrics.jsonl") const {
    return ReadMetrics(folder_ + "/" + name).value_or(std::vector<StepMetrics>());
  }
  std::vector<int64_t> Steps(const std::string& name = "run/metrics.jsonl") const {
    std::vector<int64_t> steps;
    for (const StepMetrics& row : Metrics(name)) steps.push_back(row.step);
    return steps;
  }
  RunRecord Record(const std::string& name = "run") const {
    const auto record = ReadRunRecord(folder_ + "/" + name);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(RunRecord());
  }
  std::string IdOf(const std::string& checkpoint) const {
    const auto manifest = ReadManifest(folder_ + "/" + checkpoint);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.ok() ? manifest->run.id : "";
  }
  bool Exists(const std::string& name) const { return fs::exists(folder_ + "/" + name); }

  // Every file of the run and its checkpoints with its contents, locks aside.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const std::string top : {"/run", "/saved"}) {
      for (const auto& entry : fs::recursive_directory_iterator(folder_ + top)) {
        const std::string path = entry.path().string();
        if (entry.is_regular_file() && path.find("run.lock.") == std::string::npos) {
          files[path] = ReadText(path);
        }
      }
    }
    return files;
  }
  void ExpectRefused(const std::string& arguments, const std::string& way) {
    const auto before = Files();
    EXPECT_EQ(Run(arguments), 2) << output_;
    EXPECT_THAT(output_, HasSubstr(way));
    EXPECT_EQ(Files() == before, true) << "a refused start changed a file: " << arguments;
  }

  std::string folder_;
  std::string output_;
  pid_t started_ = -1;
};

TEST_F(RunDirectoryTest, TheSameCommandGoesOnAsTheSameRun) {
  ASSERT_EQ(Run("--steps=3"), 0) << output_;
  const std::string id = Record().id;
  EXPECT_THAT(output_, AllOf(HasSubstr("run " + id + " begins in"), HasSubstr("begins at step 0"),
                             HasSubstr("checkpoint " + folder_ + "/saved/step-00000003"),
                             HasSubstr("metrics " + folder_ + "/run/metrics.jsonl")));
  EXPECT_EQ(Record().state, RunState::kStopped);
  ASSERT_EQ(Run(), 0) << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("run " + id + " goes on in"), HasSubstr("resumed after step 3"),
                    HasSubstr("completed after step 6 of 6, exit code 0")));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  for (const StepMetrics& row : Metrics()) EXPECT_EQ(row.run, id);
  EXPECT_EQ(IdOf("saved/step-00000006"), id);
  EXPECT_EQ(Record().state, RunState::kCompleted);
  EXPECT_EQ(Record().starts, 2);

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("is complete: 6 steps are done"), HasSubstr("--fresh")));
  EXPECT_EQ(Run("--set run.steps=7"), 0) << output_;
  EXPECT_EQ(Steps().back(), 7);
  EXPECT_EQ(Record().id, id);
}

TEST_F(RunDirectoryTest, LogsOfAllStartsStay) {
  ASSERT_EQ(Run(absl::StrCat("--steps=2", kTwoRanks)), 0) << output_;
  ASSERT_EQ(Run(absl::StrCat("--steps=4", kTwoRanks)), 0) << output_;
  const std::string log = ReadText(folder_ + "/run/logs/rank-0.log");
  const std::string heading = absl::StrCat("---- run ", Record().id, ", start ");
  EXPECT_EQ(log.rfind(heading + "1 ----\n", 0), 0u) << log;
  EXPECT_THAT(log, HasSubstr(heading + "2 ----\n"));
}

TEST_F(RunDirectoryTest, AnotherTrainingIsRefused) {
  ASSERT_EQ(Run("--steps=4"), 0) << output_;
  ExpectRefused("--resume=never", "--resume=auto to go on with it, or --fresh");
  ExpectRefused("--set checkpoint.resume=never", "--resume=auto to go on with it, or --fresh");
  ExpectRefused("--set run.seed=7", "run.seed is ");
  ExpectRefused("--set run.seed=7", "--fresh");
  ExpectRefused(absl::StrCat("--set data.train=[", folder_, "/other.txt]"), "data.train is ");
  ExpectRefused("--set model.layers=2", "is not in the checkpoint");
  ExpectRefused("--set optimizer.lr=1e-3", "checkpoint.allow_changes: [optimizer.lr]");
  EXPECT_EQ(Planc("check " + Job() + " --resume=auto --set run.seed=7"), 2) << "check agrees";
  EXPECT_EQ(Run("--set run.seed=7 --set checkpoint.allow_changes=[run.seed]"), 0) << output_;
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(RunDirectoryTest, FreshMovesEverythingOfTheRunAside) {
  ASSERT_EQ(Run(), 0) << output_;
  const std::string id = Record().id;
  const auto before = Files();
  const std::string board = folder_ + "/run/events.out.tfevents.1.of_another_program";
  std::ofstream(board) << "x";
  ASSERT_EQ(Run("--fresh --set run.seed=7 --steps=2"), 0) << output_;
  EXPECT_NE(Record().id, id);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(ReadText(board), "x");
  EXPECT_EQ(Record("run/run-" + id).id, id);
  std::map<std::string, std::string> moved;
  for (const auto& [path, contents] : before) {
    const bool in_run = path.rfind(folder_ + "/run/", 0) == 0;
    const std::string top = folder_ + (in_run ? "/run/" : "/saved/");
    EXPECT_EQ(ReadText(absl::StrCat(top, "run-", id, "/", path.substr(top.size()))) == contents,
              true)
        << path;
  }
  EXPECT_EQ(IdOf("saved/step-00000002"), Record().id);
}

TEST_F(RunDirectoryTest, CheckpointsOfAnotherRunAreNeitherTakenNorRemoved) {
  ASSERT_EQ(Run(), 0) << output_;
  const std::string id = Record().id;
  fs::remove_all(folder_ + "/run");
  fs::create_directories(folder_ + "/run");
  ExpectRefused("", "--resume=PATH to begin from one of them");
  EXPECT_EQ(Planc("check " + Job() + " --resume=auto"), 2) << "check agrees";
  EXPECT_THAT(output_, HasSubstr("are of other runs (" + id + ")"));

  const std::string from = folder_ + "/saved/step-00000004";
  ASSERT_EQ(Run("--set checkpoint.keep=1 --resume=" + from), 0) << output_;
  EXPECT_NE(Record().id, id);
  EXPECT_EQ(IdOf("saved/step-00000004"), id) << "not pruned";
  EXPECT_EQ(IdOf("saved/step-00000006"), Record().id);
  EXPECT_EQ(IdOf(absl::StrCat("saved/run-", id, "/step-00000006")), id) << "renamed, not replaced";
  // The same command goes on with the run that it began.
  EXPECT_EQ(Run("--set run.steps=8 --resume=" + from), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 6"));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{5, 6, 7, 8}));
}

TEST_F(RunDirectoryTest, ACopyUnderAnotherNumberIsNotTaken) {
  ASSERT_EQ(Run("--steps=4"), 0) << output_;
  fs::copy(folder_ + "/saved/step-00000002", folder_ + "/saved/step-99999999",
           fs::copy_options::recursive);
  ASSERT_EQ(Run(), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("warning: passing over"),
                             HasSubstr("its manifest is of step 2, its name is not"),
                             HasSubstr("resumed after step 4")));
  EXPECT_TRUE(Exists("saved/step-99999999")) << "not pruned either";
}

TEST_F(RunDirectoryTest, RowsOfAWayBackAreKept) {
  ASSERT_EQ(Run("--steps=4"), 0) << output_;
  ASSERT_EQ(Run("--steps=3 --resume=" + folder_ + "/saved/step-00000002"), 0) << output_;
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(Steps("run/metrics-superseded.jsonl"), (std::vector<int64_t>{3, 4}));
}

TEST_F(RunDirectoryTest, ARunHasOneOwner) {
  StartEndless(3);
  const std::string owner = absl::StrCat("process ", started_, " on host ");
  EXPECT_EQ(Run(), 2) << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("is in use by another planc run: " + owner), HasSubstr(" since 20")));
  EXPECT_EQ(Run("--fresh"), 2) << output_;
  EXPECT_EQ(Run("--set run.directory=elsewhere"), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("saved is in use by another planc run: " + owner));
  EXPECT_FALSE(Exists("elsewhere/metrics.jsonl"));
  EXPECT_EQ(Planc("status " + folder_ + "/run"), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("state running"), HasSubstr(owner), HasSubstr(", alive"),
                             HasSubstr("tokens/s"), HasSubstr("eta")));

  const pid_t watcher = Start({"status", folder_ + "/run", "--follow"}, "watched");
  const int64_t seen = Steps().back();
  while (Steps().back() < seen + 5) absl::SleepFor(absl::Milliseconds(2));
  kill(started_, SIGTERM);
  EXPECT_EQ(CodeOf(started_), 8);
  started_ = -1;
  EXPECT_EQ(CodeOf(watcher), 8) << ReadText(folder_ + "/watched");
  EXPECT_THAT(ReadText(folder_ + "/watched"), HasSubstr("stopped, exit code 8"));
  const std::vector<int64_t> steps = Steps();
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], static_cast<int64_t>(i) + 1);
}

TEST_F(RunDirectoryTest, OneOfManyStartsTrains) {
  std::vector<pid_t> processes;
  for (int i = 0; i < 5; ++i) {
    processes.push_back(
        Start({"run", Job(), "--set", "run.steps=300", "--set", "checkpoint.every_steps=100"},
              absl::StrCat("start_", i)));
  }
  int trained = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    const int code = CodeOf(processes[i]);
    const std::string log = ReadText(absl::StrCat(folder_, "/start_", i));
    EXPECT_TRUE(code == 0 || code == 2) << code << log;
    // One that came when all was done says so, code 0 too.
    trained += log.find("begins in") != std::string::npos ? 1 : 0;
    EXPECT_EQ(code == 2, log.find("is in use by another planc run") != std::string::npos) << log;
  }
  EXPECT_EQ(trained, 1);
  EXPECT_EQ(Metrics().size(), 300u);
}

TEST_F(RunDirectoryTest, AKilledRunIsTakenOver) {
  StartEndless(12);
  kill(started_, SIGKILL);
  waitpid(started_, nullptr, 0);
  started_ = -1;
  const std::string id = Record().id;
  EXPECT_EQ(Planc("runs " + folder_), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr(id), HasSubstr("kept gone")));
  EXPECT_EQ(Planc("status --follow " + folder_ + "/run"), 7);
  EXPECT_THAT(output_, HasSubstr("dead: a stale lock"));
  const int64_t last = Steps().back();
  ASSERT_EQ(Run(absl::StrCat("--set run.steps=", last + 3)), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("run " + id + " goes on"));
  const std::vector<int64_t> steps = Steps();
  ASSERT_EQ(steps.size(), static_cast<size_t>(last + 3));
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], static_cast<int64_t>(i) + 1);
  EXPECT_THAT(Planc("runs --format=json " + folder_), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("\"state\": \"completed\""), HasSubstr(id)));
}

TEST_F(RunDirectoryTest, WithoutACheckpointItBeginsAgain) {
  EXPECT_EQ(Run("--set optimizer.lr=1e38"), 6) << output_;
  EXPECT_EQ(Record().state, RunState::kFailed);
  EXPECT_EQ(Record().exit_code, 6);
  const size_t rows = Metrics().size();
  EXPECT_EQ(Run("--set optimizer.lr=1e38"), 6) << output_;
  EXPECT_THAT(output_, HasSubstr("has no checkpoint yet: it begins again at step 0"));
  EXPECT_EQ(Metrics("run/metrics-superseded.jsonl").size(), rows);
  EXPECT_EQ(Run(), 2) << "another learning rate is another training";
  EXPECT_EQ(Run("--fresh"), 0) << output_;
}

TEST_F(RunDirectoryTest, AFolderThatCannotBeUsedIsNamed) {
  std::ofstream(folder_ + "/run") << "a file";
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(output_, AllOf(HasSubstr("run.directory: "), HasSubstr("/run: cannot create: ")));
  EXPECT_EQ(Planc("status " + folder_), 2);
  EXPECT_THAT(output_, HasSubstr("there is no run here"));
  EXPECT_EQ(Planc("runs " + folder_), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("no runs below"), Not(HasSubstr("planc runs:"))));
}

TEST_F(RunDirectoryTest, ADamagedRecordIsNotGuessedAt) {
  ASSERT_EQ(Run("--steps=2"), 0) << output_;
  std::ofstream(folder_ + "/run/run.json") << "{}";
  ExpectRefused("", "not the record of a run");
  EXPECT_EQ(Run("--fresh --steps=2"), 0) << output_;
  EXPECT_TRUE(Exists("run/run-unknown/run.json"));
}

}  // namespace
}  // namespace planc
