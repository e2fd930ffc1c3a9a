// The data of a run, through the command line: what they are known by, the position in them, files
// that change while a run uses them or between two of its starts, and sets that are too small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"
#include "tests/started_run.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 35 windows of 32 tokens.
constexpr int kTokens = 35 * 32 + 1;
constexpr char kJob[] = R"(job: data
model: {family: gpt2, layers: 1, hidden: 32, heads: 4, ffn_hidden: 64, vocab: 259, max_sequence: 64}
cluster: {nodes: 1, gpus_per_node: 1, device: host}
batch: {global: 8, micro: 1, sequence: 32}
precision: {compute: fp32}
optimizer: {lr: 3e-3}
lr_schedule: {decay_steps: 100}
data: {train: [train.txt], format: bytes}
checkpoint: {directory: saved, every_steps: 2, keep: 20}
run: {steps: 10, directory: run, restarts: 0}
)";

class RunDataTest : public ::testing::Test {
 protected:
  RunDataTest() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(absl::StrCat(::testing::TempDir(), "/run_data_", name))
                  .lexically_normal()
                  .string();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    WriteTrain(LearnableText(kTokens));
    std::ofstream(folder_ + "/job.yaml") << kJob;
  }
  ~RunDataTest() override { fs::remove_all(folder_); }

  void WriteTrain(const std::string& text) {
    std::ofstream(folder_ + "/train.txt", std::ios::binary) << text;
  }
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
  int Run(const std::string& arguments = "") {
    return Planc("run " + folder_ + "/job.yaml " + arguments);
  }
  int CheckResume(const std::string& arguments = "") {
    return Planc("check " + folder_ + "/job.yaml --resume=auto " + arguments);
  }
  SavedData DataAt(int64_t step) const {
    const std::string name = absl::StrCat(step < 10 ? "step-0000000" : "step-000000", step);
    const auto manifest = ReadManifest(folder_ + "/saved/" + name);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(manifest.ok() && manifest->data.has_value());
    return manifest.ok() ? manifest->data.value_or(SavedData()) : SavedData();
  }
  std::vector<StepMetrics> Metrics() const {
    return ReadMetrics(folder_ + "/run/metrics.jsonl").value_or(std::vector<StepMetrics>());
  }
  std::vector<int64_t> TokensOfRows() const {
    std::vector<int64_t> tokens;
    for (const StepMetrics& row : Metrics()) tokens.push_back(row.tokens);
    return tokens;
  }

  std::string folder_;
  std::string output_;
};

TEST_F(RunDataTest, ManifestAndRecordSayWhatTheDataAreAndWhereTheRunIs) {
  ASSERT_EQ(Run("--steps=6"), 0) << output_;
  EXPECT_THAT(output_,
              HasSubstr("data.train: 1121 tokens, 35 windows of 32 in an epoch; up to step "
                        "6, epochs 0.00 to 1.37"));
  const SavedData data = DataAt(6);
  EXPECT_EQ(data.position.samples, 48);
  EXPECT_EQ(data.position.tokens, 48 * 32);
  ASSERT_EQ(data.identity.train.size(), 1u);
  EXPECT_EQ(data.identity.train[0].tokens, kTokens);
  const auto record = ReadRunRecord(folder_ + "/run");
  ASSERT_TRUE(record.ok() && record->data.has_value()) << record.status();
  EXPECT_EQ(ChecksumOf(*record->data), ChecksumOf(data.identity));
  ASSERT_TRUE(Metrics().back().epoch.has_value());
  EXPECT_NEAR(*Metrics().back().epoch, 48 / 35.0, 1e-6);
  ASSERT_EQ(CheckResume(), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("48 samples and 1536 tokens are done, 1.37 epochs"),
                             HasSubstr("the run goes on bit for bit")));
}

TEST_F(RunDataTest, AnotherBatchGoesOnWithTheNextSample) {
  ASSERT_EQ(Run("--steps=4"), 0) << output_;
  ASSERT_EQ(Run("--steps=6 --set batch.global=4"), 0) << output_;
  EXPECT_EQ(DataAt(6).position.samples, 4 * 8 + 2 * 4);
  ASSERT_EQ(Run("--steps=7"), 0) << output_;
  EXPECT_EQ(DataAt(7).position.samples, 4 * 8 + 2 * 4 + 8);
  EXPECT_THAT(TokensOfRows(), ElementsAre(256, 512, 768, 1024, 1152, 1280, 1536));
  // One deal from the first sample to the last: no window was skipped or read again.
  EXPECT_THAT(DataAt(7).position.deals, testing::SizeIs(1));
}

TEST_F(RunDataTest, ASequenceThatFitsGoesOnAndAnotherOneIsTold) {
  ASSERT_EQ(Run("--steps=2"), 0) << output_;
  ASSERT_EQ(Run("--steps=4 --set batch.sequence=16"), 0) << output_;
  EXPECT_THAT(output_,
              HasSubstr("epoch 0 goes on after 16 samples, 512 tokens, with the 38 samples "
                        "of 16 tokens that it has left; epoch 1 has 70 windows"));
  EXPECT_EQ(DataAt(4).position.tokens, 16 * 32 + 16 * 16);
  ASSERT_EQ(CheckResume("--set batch.sequence=64"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("22 windows (352 tokens) of epoch 0 are not read in it, and epoch "
                                 "1 begins after 32 samples, 768 tokens"));
  ASSERT_EQ(Run("--steps=6 --set batch.sequence=64"), 0) << output_;
  EXPECT_EQ(DataAt(6).position.tokens, 16 * 32 + 16 * 16 + 16 * 64);
}

TEST_F(RunDataTest, AppendedDataAreReadFromTheNextEpochOn) {
  ASSERT_EQ(Run("--steps=2"), 0) << output_;
  std::ofstream(folder_ + "/train.txt", std::ios::app) << LearnableText(32 * 10);
  ASSERT_EQ(CheckResume(), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("the 19 samples of 32 tokens that it has left; epoch 1 has "
                                       "45 windows"),
                             Not(HasSubstr("bit for bit"))));
  ASSERT_EQ(Run("--steps=4"), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("train.txt with 1121 tokens"), HasSubstr("1441 tokens")));
  EXPECT_EQ(DataAt(4).position.samples, 32);
  EXPECT_EQ(DataAt(4).identity.train[0].tokens, kTokens + 320);
}

TEST_F(RunDataTest, OtherDataAreRefusedUnlessTheyAreAllowed) {
  ASSERT_EQ(Run("--steps=2"), 0) << output_;
  std::string other = LearnableText(kTokens);
  other[100] ^= 1;
  WriteTrain(other);
  EXPECT_EQ(CheckResume("--set run.steps=4"), 2) << output_;
  EXPECT_EQ(Run("--steps=4"), 2) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("data.train"), HasSubstr("train.txt with 1121 tokens")));
  EXPECT_EQ(Metrics().size(), 2u);
  ASSERT_EQ(Run("--steps=4 --set checkpoint.allow_changes=[data.train]"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("after 16 samples, 512 tokens, other data than before are read "
                                 "from the beginning: epoch 0 of 35 windows"));
  EXPECT_EQ(DataAt(4).position.tokens, 1024);
  // The same bytes under another name are the same data.
  fs::rename(folder_ + "/train.txt", folder_ + "/moved.txt");
  ASSERT_EQ(
      CheckResume(absl::StrCat("--set checkpoint.allow_changes=[data.train] --set data.train=[",
                               folder_, "/moved.txt]")),
      0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("bit for bit"));
}

TEST_F(RunDataTest, TooFewWindowsForABatchIsAWarning) {
  WriteTrain(LearnableText(32 * 3 + 1));
  ASSERT_EQ(Run("--steps=1"), 0) << output_;
  const std::string warning =
      "data.train: 3 windows of batch.sequence 32, fewer than batch.global 8: every step uses some "
      "of them more than once";
  EXPECT_THAT(output_, HasSubstr(warning));
  ASSERT_EQ(Planc("check --data " + folder_ + "/job.yaml"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr(warning));
}

// With a rate of next to nothing, all weights stay as they were drawn: validations of the same
// windows have the same loss, in whatever batches and on whatever mesh.
TEST_F(RunDataTest, AValidationUsesEachWindowOnce) {
  std::ofstream(folder_ + "/validation.txt") << LearnableText(3 * 32 + 1);
  const auto loss = [&](const std::string& name, const std::string& more) {
    const std::string at = absl::StrCat(folder_, "/", name);
    EXPECT_EQ(Run(absl::StrCat("--steps=1 --set run.eval_every_steps=1 --set optimizer.lr=1e-30 ",
                               "--set optimizer.weight_decay=0 --set data.validation=[", folder_,
                               "/validation.txt] --set run.directory=", at,
                               " --set checkpoint.directory=", at, "/saved ", more)),
              0)
        << output_;
    const auto rows = ReadMetrics(at + "/metrics.jsonl");
    EXPECT_TRUE(rows.ok() && rows->size() == 1u) << rows.status();
    const StepMetrics row = rows.ok() && !rows->empty() ? rows->back() : StepMetrics();
    EXPECT_EQ(row.validation_windows.value_or(-1), 3) << name;
    return row.validation_loss.value_or(-1);
  };
  const double expected = loss("single", "--set batch.global=1 --set run.eval_batches=3");
  EXPECT_GT(expected, 1);
  EXPECT_NEAR(loss("four", "--set batch.global=4 --set run.eval_batches=1"), expected, 1e-5);
  EXPECT_THAT(output_,
              HasSubstr("data.validation: 3 windows; a validation uses 3 of them once, not "
                        "the 4 that are asked for"));
  EXPECT_NEAR(loss("two", "--set batch.global=2 --set run.eval_batches=8"), expected, 1e-5);
  EXPECT_NEAR(loss("mesh",
                   "--set batch.global=8 --set run.eval_batches=2 --set cluster.gpus_per_node=4 "
                   "--set mesh.dp_shard=2 --set mesh.tp=2 --set batch.micro=2"),
              expected, 1e-5);
}

// While a run uses them, with two ranks.
class DataInUseTest : public ::testing::Test {
 protected:
  static constexpr int kLength = 4 << 20;

  DataInUseTest()
      : run_(absl::StrCat(::testing::TempDir(), "/",
                          ::testing::UnitTest::GetInstance()->current_test_info()->name()),
             2, "dp_shard: 2", "steps: 100000, restarts: 3", "") {
    std::ofstream(Data(), std::ios::binary) << LearnableText(kLength);
  }
  // Starts the run and waits until it trains.
  void Start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"run", "job.yaml", "--set", "data.validation=[]"};
    words.insert(words.end(), {"--set", "checkpoint.every_steps=1000000"});
    words.insert(words.end(), more.begin(), more.end());
    run_.Start(words);
    ASSERT_TRUE(run_.Await([&] { return run_.RowsOfMetrics() >= 2; })) << run_.Output();
  }
  // Of two bytes each.
  static std::string Tokens(char high) {
    std::string tokens;
    for (int i = 0; i < kLength / 2; ++i) {
      tokens += static_cast<char>(i % 97);
      tokens += high;
    }
    return tokens;
  }
  std::string Data() const { return run_.folder() + "/train.txt"; }

  StartedRun run_;
};

TEST_F(DataInUseTest, AFileThatIsCutEndsTheJobWithItsName) {
  Start();
  fs::resize_file(Data(), 500);
  EXPECT_EQ(run_.ExitCode(), 6) << run_.Output();
  EXPECT_THAT(run_.Output(),
              AllOf(HasSubstr("train.txt"), HasSubstr("cut short"), HasSubstr("this rank finds")));
  EXPECT_EQ(run_.StepsSaved(), -1);
}

TEST_F(DataInUseTest, ATokenBeyondTheVocabularyThatIsWrittenLaterEndsTheJob) {
  std::ofstream(Data(), std::ios::binary) << Tokens('\0');
  Start({"--set", "data.format=tokens"});
  std::fstream(Data(), std::ios::in | std::ios::out | std::ios::binary) << Tokens('\xff');
  EXPECT_EQ(run_.ExitCode(), 6) << run_.Output();
  EXPECT_THAT(run_.Output(),
              AllOf(HasSubstr("train.txt: token "), HasSubstr("is 65"),
                    HasSubstr("but model.vocab is 256"), HasSubstr("this rank finds")));
}

TEST_F(DataInUseTest, AFileThatIsReplacedIsNotWhatRestartedRanksRead) {
  Start();
  std::ofstream(Data() + ".new", std::ios::binary) << std::string(kLength, 'b');
  fs::rename(Data() + ".new", Data());
  kill(RanksOf(run_.process()).at(1), SIGKILL);
  EXPECT_EQ(run_.ExitCode(), 6) << run_.Output();
  EXPECT_THAT(run_.Output(), AllOf(HasSubstr("data.train: the run began with train.txt"),
                                   HasSubstr("all ranks read the same data")));
}

}  // namespace
}  // namespace planc
