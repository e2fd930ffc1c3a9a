// Trains a small model through the command line, as a user does, and compares runs: every mesh
// gives the same losses, a resumed run is bit-identical, faults end with their exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/metrics/metrics_writer.h"
#include "schemas/plan.h"
#include "tests/run_files.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

// A folder of its own for each test, with text to train on.
class TrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = absl::StrCat(::testing::TempDir(), "/", info->name());
    std::filesystem::create_directories(folder_);
    WriteText("train.txt", 20000);
    WriteText("validation.txt", 3000);
  }

  void WriteText(const std::string& name, int length) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << LearnableText(length);
  }

  // Writes a job of 6 steps into a file; `mesh` and `more` are YAML.
  std::string WriteJob(const std::string& name, int ranks, const std::string& mesh,
                       const std::string& more) {
    const std::string path = absl::StrCat(folder_, "/", name, ".yaml");
    std::ofstream(path) << "job: " << name << "\n"
                        << "model: {family: llama, layers: 4, hidden: 32, heads: 4, kv_heads: 2,"
                           " ffn_hidden: 64, vocab: 256}\n"
                        << "cluster: {nodes: 1, gpus_per_node: " << ranks << ", device: host}\n"
                        << "mesh: {" << mesh << "}\n"
                        << "batch: {global: 8, micro: 1, sequence: 32}\n"
                        << "optimizer: {lr: 3e-3}\n"
                        << "lr_schedule: {warmup_steps: 2}\n"
                        << "data: {train: [train.txt], validation: [validation.txt],"
                           " format: bytes}\n"
                        << "run: {steps: 6, eval_every_steps: 3, directory: " << name << "}\n"
                        << more << "\n";
    return path;
  }

  // Runs planc; what it prints goes to last_output_. Returns its exit code.
  int Planc(const std::string& arguments) {
    const std::string log = folder_ + "/planc.log";
    const int status =
        std::system(absl::StrCat("planc/planc ", arguments, " > ", log, " 2>&1").c_str());
    last_output_ = ReadText(log);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<StepMetrics> Metrics(const std::string& name) {
    auto rows = ReadMetrics(absl::StrCat(folder_, "/", name, "/metrics.jsonl"));
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : std::vector<StepMetrics>();
  }

  // Runs a job and returns its rows.
  std::vector<StepMetrics> Train(const std::string& name, int ranks, const std::string& mesh,
                                 const std::string& more) {
    const std::string job = WriteJob(name, ranks, mesh, more);
    EXPECT_EQ(Planc(absl::StrCat("run ", job)), 0) << name << ":\n" << last_output_;
    return Metrics(name);
  }

  std::string folder_;
  std::string last_output_;
};

constexpr char kFloat[] = "precision: {compute: fp32}";
constexpr char kBrain[] = "precision: {compute: bf16}";

void ExpectSameCurve(const std::vector<StepMetrics>& expected,
                     const std::vector<StepMetrics>& actual, double tolerance,
                     const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i].loss, expected[i].loss, tolerance) << what << ", row " << i;
    EXPECT_NEAR(actual[i].grad_norm, expected[i].grad_norm, 10 * tolerance) << what;
    ASSERT_EQ(expected[i].validation_loss.has_value(), actual[i].validation_loss.has_value());
    if (expected[i].validation_loss.has_value()) {
      EXPECT_NEAR(*actual[i].validation_loss, *expected[i].validation_loss, tolerance) << what;
    }
  }
}

struct MeshCase {
  std::string name;
  int ranks;
  std::string mesh;
  std::string parallelism;
};

const std::vector<MeshCase>& MeshCases() {
  static const auto* const cases = new std::vector<MeshCase>{
      {"zero1", 2, "dp_shard: 2", "parallelism: {zero: 1}"},
      {"interleaved", 2, "pp: 2",
       "parallelism: {pipeline: {schedule: interleaved_1f1b, virtual_stages: 2}}"},
      {"mixed", 4, "dp_shard: 2, tp: 2", "parallelism: {zero: 3, sequence_parallel: true}"},
      {"wide", 4, "pp: 2, dp_replicate: 2", ""},
  };
  return *cases;
}

TEST_F(TrainingTest, EveryMeshGivesTheSameLosses) {
  const std::vector<StepMetrics> expected = Train("single", 1, "", kFloat);
  ASSERT_EQ(expected.size(), 6u);
  EXPECT_NEAR(expected.front().loss, std::log(256.0), 0.2);
  EXPECT_LT(expected.back().loss, expected.front().loss - 0.3) << "it learns";
  for (const MeshCase& one : MeshCases()) {
    const std::string more = absl::StrCat(kFloat, "\n", one.parallelism);
    ExpectSameCurve(expected, Train(one.name, one.ranks, one.mesh, more), 2e-4, one.name);
  }
}

TEST_F(TrainingTest, MeshesAgreeInBf16) {
  const std::vector<StepMetrics> expected = Train("single", 1, "", kBrain);
  const std::string more =
      absl::StrCat(kBrain, "\nparallelism: {zero: 2, sequence_parallel: true}");
  ExpectSameCurve(expected, Train("mixed", 4, "dp_shard: 2, tp: 2", more), 5e-2, "mixed");
}

TEST_F(TrainingTest, AResumedRunIsBitIdentical) {
  const std::string more =
      absl::StrCat(kFloat, "\nparallelism: {zero: 2}\ncheckpoint: {every_steps: 3, resume: auto}");
  const std::vector<StepMetrics> whole = Train("whole", 2, "dp_shard: 2", more);
  const std::string job = WriteJob("halves", 2, "dp_shard: 2", more);
  ASSERT_EQ(Planc(absl::StrCat("run ", job, " --steps=3")), 0) << last_output_;
  ASSERT_EQ(Metrics("halves").size(), 3u);
  ASSERT_EQ(Planc(absl::StrCat("run ", job)), 0) << last_output_;
  EXPECT_THAT(last_output_, HasSubstr("resumed after step 3"));
  ExpectSameCurve(whole, Metrics("halves"), 0.0, "resumed");
}

TEST_F(TrainingTest, CheckpointsWrittenInTheBackgroundAreTheSame) {
  const std::string more = absl::StrCat(kFloat, "\nparallelism: {zero: 2}\n");
  const std::string saving = "checkpoint: {every_steps: 2, keep: 9, resume: auto, async: ";
  Train("sync", 2, "dp_shard: 2", absl::StrCat(more, saving, "false, directory: sync/saved}"));
  const std::string job = WriteJob("async", 2, "dp_shard: 2",
                                   absl::StrCat(more, saving, "true, directory: async/saved}"));
  ASSERT_EQ(Planc(absl::StrCat("run ", job, " --steps=3")), 0) << last_output_;
  ASSERT_EQ(Planc(absl::StrCat("run ", job)), 0) << last_output_;
  EXPECT_THAT(last_output_, HasSubstr("2 checkpoints: stall "));
  for (const int step : {2, 4, 6}) {
    for (const int rank : {0, 1}) {
      const std::string file =
          absl::StrCat("/saved/step-0000000", step, "/rank-0000", rank, ".safetensors");
      EXPECT_EQ(ReadText(folder_ + "/sync" + file), ReadText(folder_ + "/async" + file)) << file;
    }
  }
  const std::vector<StepMetrics> rows = Metrics("async");
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_TRUE(rows[4].checkpoint_stall_seconds.has_value()) << "of the save after step 4";
}

TEST_F(TrainingTest, AStopEndsAValidationWhichIsMadeUpForLater) {
  const std::string more = absl::StrCat(kFloat, "\ncheckpoint: {resume: auto}");
  const std::vector<StepMetrics> whole = Train("whole", 1, "", kFloat);
  const std::string job = WriteJob("stopped", 1, "", more);
  // Validation goes on until the signal comes: each window is used once, and there are many.
  std::ofstream many(folder_ + "/many.txt");
  for (int line = 0; line < 4'000'000; ++line) many << line << "\n";
  many.close();
  std::thread stopper([this] {
    const absl::Time deadline = absl::Now() + absl::Minutes(2);
    const std::string path = folder_ + "/stopped/metrics.jsonl";
    while (absl::Now() < deadline && !std::filesystem::exists(folder_ + "/ended")) {
      const auto rows = ReadMetrics(path);
      if (rows.ok() && rows->size() >= 2) break;
      absl::SleepFor(absl::Milliseconds(20));
    }
    absl::SleepFor(absl::Seconds(1));
    int process = 0;
    std::ifstream(folder_ + "/process") >> process;
    if (process > 0) kill(process, SIGTERM);
  });
  const std::string command =
      absl::StrCat("sh -c 'echo $$ > ", folder_, "/process; exec planc/planc run ", job,
                   " --set run.eval_batches=1000000 --set data.validation=[", folder_,
                   "/many.txt]' > ", folder_, "/planc.log 2>&1");
  const int status = std::system(command.c_str());
  std::ofstream(folder_ + "/ended").flush();
  stopper.join();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 8)
      << status << ReadText(folder_ + "/planc.log");
  ASSERT_EQ(Metrics("stopped").size(), 3u);
  EXPECT_FALSE(Metrics("stopped")[2].validation_loss.has_value());
  ASSERT_EQ(Planc(absl::StrCat("run ", job)), 0) << last_output_;
  ExpectSameCurve(whole, Metrics("stopped"), 0.0, "made up");
}

TEST_F(TrainingTest, ACheckpointLoadsOnAnotherMesh) {
  const std::string saving = absl::StrCat(kFloat, "\ncheckpoint: {every_steps: 3, keep: 3}");
  const std::vector<StepMetrics> whole = Train("saver", 2, "tp: 2", saving);
  const std::string loading = absl::StrCat(
      kFloat, "\nparallelism: {zero: 3}\ncheckpoint: {resume: saver/checkpoints/step-00000003}");
  const std::vector<StepMetrics> rest = Train("loader", 2, "dp_shard: 2", loading);
  ASSERT_EQ(rest.size(), 3u) << last_output_;
  ExpectSameCurve({whole.begin() + 3, whole.end()}, rest, 2e-4, "resharded");
}

TEST_F(TrainingTest, ANonFiniteLossEndsWithCode6) {
  const std::string job = WriteJob("diverges", 2, "dp_shard: 2", kFloat);
  EXPECT_EQ(Planc(absl::StrCat("run ", job, " --set optimizer.lr=1e38")), 6) << last_output_;
  EXPECT_THAT(last_output_, HasSubstr("clip_coefficient(norm_sum, loss)"));
}

TEST_F(TrainingTest, MissingDataEndsWithCode2BeforeAnythingStarts) {
  const std::string job = WriteJob("missing", 2, "dp_shard: 2", kFloat);
  EXPECT_EQ(Planc(absl::StrCat("run ", job, " --set data.train=[", folder_, "/none.txt]")), 2);
  EXPECT_THAT(last_output_, HasSubstr("none.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/missing/metrics.jsonl"));
}

// The plan's bytes beside those that the kernel gave: they differ by rounding to pages.
TEST_F(TrainingTest, TheMemoryTableComparesThePlanWithTheMachine) {
  Train("memory", 2, "dp_shard: 2", "parallelism: {zero: 2}");
  const size_t table = last_output_.find("Memory of rank 0:\n");
  ASSERT_NE(table, std::string::npos) << last_output_;
  std::istringstream lines(last_output_.substr(table));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  int arenas = 0;
  int64_t resident_sum = 0;
  while (std::getline(lines, line) && line.find("all arenas") == std::string::npos) {
    std::istringstream fields(line);
    std::string name;
    int64_t planned = 0, mapped = 0, resident = 0, difference = 0;
    ASSERT_TRUE(fields >> name >> planned >> mapped >> resident >> difference) << line;
    EXPECT_EQ(mapped, (planned + 4095) / 4096 * 4096) << line;
    EXPECT_EQ(resident, mapped) << line;
    EXPECT_EQ(difference, mapped - planned) << line;
    resident_sum += resident;
    ++arenas;
  }
  EXPECT_EQ(arenas, kMemoryKindCount);
  EXPECT_GT(resident_sum, 0);
  std::string word, peak;
  int64_t peak_bytes = 0;
  lines >> word >> peak >> peak_bytes;
  EXPECT_EQ(word + " " + peak, "process peak");
  EXPECT_GT(peak_bytes, resident_sum);
}

TEST_F(TrainingTest, ThePlanFileIsWhatRuns) {
  const std::string job = WriteJob("planned", 2, "tp: 2", kFloat);
  const std::string plan = folder_ + "/planned.plan";
  ASSERT_EQ(Planc(absl::StrCat("plan ", job, " -o ", plan)), 0) << last_output_;
  ASSERT_EQ(Planc(absl::StrCat("run ", plan)), 0) << last_output_;
  std::ostringstream reviewed, ran;
  reviewed << std::ifstream(plan).rdbuf();
  ran << std::ifstream(folder_ + "/planned/plan.plan").rdbuf();
  EXPECT_EQ(reviewed.str(), ran.str());
}

}  // namespace
}  // namespace planc
