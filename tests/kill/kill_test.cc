// Kills the processes of one training run again and again, by SIGKILL at random moments, and
// compares what comes out with a run that was left alone: every loss and every byte of the final
// weights must be the same.
//
//   kill_test [--kills=N] [--seed=N]
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "tests/kill/killed_run.h"
#include "tests/run_files.h"

namespace planc {
namespace {

constexpr int64_t kRanks = 4;

int64_t kill_count = 20;
int64_t kill_seed = 1;

// Enough for all kills where a step takes a few milliseconds: some wait for 0.6 seconds.
int64_t Steps() { return 40 * kill_count + 200; }

// A folder with a job and text to train on.
std::string MakeJob(const std::string& name) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/train.txt", std::ios::binary) << LearnableText(20000);
  std::ofstream(folder + "/job.yaml")
      << "job: killed\n"
         "model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn_hidden: 64,"
         " vocab: 256}\n"
         "cluster: {nodes: 1, gpus_per_node: 4, device: host}\n"
         "mesh: {dp_shard: 2, tp: 2}\n"
         "parallelism: {zero: 2}\n"
         "precision: {compute: fp32}\n"
         "batch: {global: 4, micro: 1, sequence: 16}\n"
         "optimizer: {lr: 1e-3}\n"
         "lr_schedule: {warmup_steps: 2}\n"
         "data: {train: [train.txt], format: bytes}\n"
         "checkpoint: {every_steps: 5, keep: 2, async: true, resume: auto, directory: saved}\n"
      << "run: {steps: " << Steps() << ", log_every_steps: 1, directory: run, restarts: 3}\n";
  return folder;
}

// The text of a row's field in metrics.jsonl.
std::string FieldText(const std::string& row, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\":");
  const size_t begin = row.find(key);
  if (begin == std::string::npos) return "";
  const size_t end = row.find_first_of(",}", begin);
  return row.substr(begin + key.size(), end - begin - key.size());
}

// The text of the loss, by step; fails unless every step has exactly one row.
std::map<int64_t, std::string> Losses(const std::string& folder) {
  std::map<int64_t, std::string> losses;
  std::ifstream file(folder + "/run/metrics.jsonl");
  for (std::string row; std::getline(file, row);) {
    int64_t step = 0;
    if (!absl::SimpleAtoi(FieldText(row, "step"), &step)) continue;  // not the row of a step
    const std::string loss = FieldText(row, "loss");
    EXPECT_NE(loss, "") << row;
    EXPECT_TRUE(losses.emplace(step, loss).second) << "two rows of step " << step;
  }
  EXPECT_EQ(static_cast<int64_t>(losses.size()), Steps());
  return losses;
}

// The bytes of the final checkpoint's tensors, by file.
std::map<std::string, std::string> FinalTensors(const std::string& folder) {
  std::map<std::string, std::string> files;
  const std::string checkpoint = absl::StrCat(folder, "/saved/", CheckpointName(Steps()));
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".safetensors") {
      files[entry.path().filename().string()] = ReadText(entry.path().string());
    }
  }
  EXPECT_FALSE(files.empty()) << checkpoint;
  return files;
}

struct TimedRun {
  std::string folder;
  int exit_code = -1;
  KillCounts counts;
  double seconds = 0;
};

TimedRun RunJob(const std::string& name, int kills) {
  TimedRun result;
  result.folder = MakeJob(name);
  const absl::Time begin = absl::Now();
  KilledRun run({"planc/planc", "run", result.folder + "/job.yaml"}, result.folder + "/saved",
                result.folder + "/planc.log", kill_seed);
  result.exit_code = run.Run(kills, kRanks);
  result.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  result.counts = run.counts();
  return result;
}

TEST(KillTest, NothingCommittedIsLost) {
  const TimedRun whole = RunJob("whole", 0);
  ASSERT_EQ(whole.exit_code, 0) << ReadText(whole.folder + "/planc.log");
  const TimedRun killed = RunJob("killed", static_cast<int>(kill_count));
  ASSERT_EQ(killed.exit_code, 0) << ReadText(killed.folder + "/planc.log");
  std::cout << killed.counts.Text() << "\n"
            << absl::StrFormat(
                   "%d steps: %.1f s left alone, %.1f s with kills: %.1f s lost, %.2f s for each "
                   "kill\n",
                   Steps(), whole.seconds, killed.seconds, killed.seconds - whole.seconds,
                   (killed.seconds - whole.seconds) / static_cast<double>(kill_count));
  EXPECT_EQ(killed.counts.kills, kill_count) << "the run ended too early";
  EXPECT_GT(killed.counts.during_write, 0);
  EXPECT_GT(killed.counts.without_progress, 0);

  EXPECT_EQ(Losses(killed.folder), Losses(whole.folder));
  EXPECT_EQ(FinalTensors(killed.folder) == FinalTensors(whole.folder), true)
      << "the final weights differ";
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool known = (absl::StartsWith(argument, "--kills=") &&
                        absl::SimpleAtoi(argument.substr(8), &planc::kill_count)) ||
                       (absl::StartsWith(argument, "--seed=") &&
                        absl::SimpleAtoi(argument.substr(7), &planc::kill_seed));
    if (!known) {
      std::cerr << "kill_test: what is " << argument << "?\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
