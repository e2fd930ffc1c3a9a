// planc sample and planc checkpoint, on a small model that was initialized but not trained.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/instruction_set.h"
#include "planc/commands.h"
#include "planc/load_plan.h"
#include "planc/sampling/language_model.h"
#include "runtime/checkpoint/save.h"
#include "runtime/data/token_loader.h"
#include "runtime/device/host_device.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kSequence = 16;
constexpr char kJob[] = R"(
job: sampled
model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn_hidden: 48, vocab: 256}
cluster: {nodes: 1, gpus_per_node: 1, device: host}
batch: {global: 1, micro: 1, sequence: 16}
precision: {compute: fp32}
optimizer: {lr: 1e-3}
data: {train: [text.txt], validation: [text.txt], format: bytes}
run: {steps: 1}
)";

class SampleTest : public testing::Test {
 protected:
  // Saves the initial weights, and keeps the loss that the plan itself finds for them.
  static void SetUpTestSuite() {
    directory_ = testing::TempDir() + "sample";
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    std::ofstream(directory_ + "/text.txt") << "a text of more than one window, for the loss";
    std::ofstream(directory_ + "/job.yaml") << kJob;
    std::ostringstream err;
    LoadedPlan loaded;
    ASSERT_EQ(LoadPlan("test", directory_ + "/job.yaml", {}, err, &loaded), kExitOk) << err.str();
    const Plan& plan = loaded.plan;
    auto data = TokenLoader::OpenValidation(plan, directory_);
    ASSERT_TRUE(data.ok()) << data.status();
    const std::unique_ptr<Device> device = CreateHostDevice();
    auto session =
        Session::Create(plan, 0, 1, *host::DetectInstructionSet(), device.get(), nullptr);
    ASSERT_TRUE(session.ok()) << session.status();
    auto runner = ProgramRunner::Create(**session, device.get(), {});
    ASSERT_TRUE(runner.ok()) << runner.status();
    ProgramInputs inputs;
    inputs.tokens = data->get();
    for (const ProgramKind kind : {ProgramKind::kInit, ProgramKind::kPublish, ProgramKind::kEval}) {
      ASSERT_TRUE((*runner)->Run(kind, inputs).ok());
    }
    loss_ = (*session)->EvalLoss();
    tokens_.resize(kSequence + 1);
    (*data)->stream().Read(0, kSequence + 1, tokens_.data());
    SoleAgreement agreement;
    ASSERT_TRUE(
        SaveCheckpoint(plan, 0, (*session)->Shards(), 3, directory_ + "/checkpoints", agreement)
            .ok());
  }

  static std::string Checkpoint() { return directory_ + "/checkpoints/step-00000003"; }

  static std::string directory_;
  static double loss_;
  static std::vector<int32_t> tokens_;
};

std::string SampleTest::directory_;
double SampleTest::loss_ = 0;
std::vector<int32_t> SampleTest::tokens_;

TEST_F(SampleTest, LogitsGiveTheLossOfThePlan) {
  const auto model = LanguageModel::Load(Checkpoint(), 100, 1);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->sequence(), kSequence);
  double loss = 0;
  for (int64_t i = 0; i < kSequence; ++i) {
    const auto logits =
        (*model)->Logits(std::vector<int32_t>(tokens_.begin(), tokens_.begin() + i + 1));
    ASSERT_TRUE(logits.ok()) << logits.status();
    double sum = 0;
    for (int64_t v = 0; v < (*model)->vocab(); ++v) sum += std::exp((*logits)[v]);
    loss += std::log(sum) - (*logits)[tokens_[static_cast<size_t>(i) + 1]];
  }
  EXPECT_NEAR(loss / kSequence, loss_, 1e-5);
  EXPECT_NEAR(loss_, std::log(256.0), 0.5);
}

TEST_F(SampleTest, SampleCommand) {
  const auto sample = [](const std::vector<std::string>& flags, int expected) {
    std::vector<std::string> args = {directory_ + "/checkpoints"};
    args.insert(args.end(), flags.begin(), flags.end());
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunSample(args, out, err), expected) << err.str();
    return expected == kExitOk ? out.str() : err.str();
  };
  const std::string text = sample({"--prompt=ab\n", "--tokens=30"}, kExitOk);
  EXPECT_EQ(text.substr(0, 3), "ab\n");
  EXPECT_EQ(sample({"--prompt=ab\n", "--tokens=30"}, kExitOk), text);
  EXPECT_NE(sample({"--prompt=ab\n", "--tokens=30", "--seed=5"}, kExitOk), text);
  EXPECT_THAT(sample({}, kExitJobError), HasSubstr("--prompt=TEXT is missing"));
  EXPECT_THAT(sample({"--prompt=a", "--tokens=0"}, kExitJobError), HasSubstr("--tokens `0`"));
  EXPECT_THAT(sample({"--prompt=a", "--temperature=-1"}, kExitJobError),
              HasSubstr("--temperature `-1`"));
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunSample({directory_ + "/none", "--prompt=a"}, out, err), kExitJobError);
}

// The same weights and a vocabulary of tokens: a checkpoint of a model that was trained on numbers.
TEST_F(SampleTest, TokenNumbersAndTokenizers) {
  const std::string folder = directory_ + "/numbers";
  fs::create_directories(folder);
  std::ofstream(folder + "/tokens.bin", std::ios::binary) << std::string(200, '\x01');
  std::string text = kJob;
  text.replace(text.find("vocab: 256"), 10, "vocab: 704");
  text.replace(text.find("data: {"), text.find("run:") - text.find("data: {"),
               "data: {train: [tokens.bin]}\n");
  std::ofstream(folder + "/job.yaml") << text;
  std::ostringstream problems;
  LoadedPlan loaded;
  ASSERT_EQ(LoadPlan("test", folder + "/job.yaml", {}, problems, &loaded), kExitOk)
      << problems.str();
  const std::unique_ptr<Device> device = CreateHostDevice();
  auto session =
      Session::Create(loaded.plan, 0, 1, host::InstructionSet::kAvx2, device.get(), nullptr);
  ASSERT_TRUE(session.ok()) << session.status();
  auto runner = ProgramRunner::Create(**session, device.get(), {});
  ASSERT_TRUE(runner.ok()) << runner.status();
  ASSERT_TRUE((*runner)->Run(ProgramKind::kInit, ProgramInputs()).ok());
  SoleAgreement agreement;
  ASSERT_TRUE(
      SaveCheckpoint(loaded.plan, 0, (*session)->Shards(), 1, folder + "/saved", agreement).ok());
  const auto sample = [&](std::vector<std::string> args, int expected) {
    args.insert(args.begin(), folder + "/saved");
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunSample(args, out, err), expected) << err.str();
    return expected == kExitOk ? out.str() : err.str();
  };
  const std::string gpt2 = "--tokenizer=runtime/tokenizer/testdata/gpt2.json";
  std::istringstream numbers(sample({"--prompt-tokens=5,6,7", "--tokens=4"}, kExitOk));
  std::vector<int> found(std::istream_iterator<int>(numbers), {});
  ASSERT_EQ(found.size(), 7u);
  EXPECT_EQ(std::vector<int>(found.begin(), found.begin() + 3), (std::vector<int>{5, 6, 7}));
  const std::string told = sample({"--prompt=In the", gpt2, "--tokens=20"}, kExitOk);
  EXPECT_EQ(told.substr(0, 6), "In the");
  EXPECT_GT(told.size(), 20u);
  EXPECT_EQ(sample({"--prompt=In the", gpt2, "--tokens=20"}, kExitOk), told);
  EXPECT_THAT(sample({"--prompt=In the"}, kExitJobError), HasSubstr("--tokenizer=FILE"));
  EXPECT_THAT(sample({"--prompt-tokens=704"}, kExitJobError),
              HasSubstr("the prompt has token 704, but model.vocab is 704"));
  EXPECT_THAT(sample({"--prompt-tokens=1,x"}, kExitJobError), HasSubstr("`x` is not a whole"));
  EXPECT_THAT(sample({"--prompt-tokens=1", "--prompt=a"}, kExitJobError),
              HasSubstr("exclude each other"));
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunSample({Checkpoint(), "--prompt=a", gpt2}, out, err), kExitJobError);
  EXPECT_THAT(err.str(), HasSubstr("the model was trained on bytes"));
}

TEST_F(SampleTest, CheckpointCommand) {
  const auto run = [](const std::vector<std::string>& args, int expected) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunCheckpoint(args, out, err), expected) << err.str();
    return out.str() + err.str();
  };
  const std::string copy = directory_ + "/copy/step-00000003";
  fs::create_directories(directory_ + "/copy");
  fs::copy(Checkpoint(), copy);
  EXPECT_THAT(run({"ls", directory_ + "/copy"}, kExitOk), HasSubstr("sampled"));
  EXPECT_THAT(run({"verify", copy}, kExitOk), HasSubstr("whole"));
  fs::resize_file(copy + "/rank-00000.safetensors", 1000);
  EXPECT_THAT(run({"verify", copy}, kExitTrainingFault), HasSubstr("rank-00000.safetensors"));
  fs::remove(copy + "/manifest.json");
  EXPECT_THAT(run({"verify", copy}, kExitJobError), HasSubstr("no complete checkpoint"));
  EXPECT_THAT(run({"export", copy}, kExitJobError), HasSubstr("export needs two paths"));
  EXPECT_THAT(run({}, kExitJobError), HasSubstr("usage:"));
  EXPECT_THAT(run({"ls"}, kExitJobError), HasSubstr("ls needs a path"));
}

}  // namespace
}  // namespace planc
