// planc check --data.
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planc/commands.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"(job: checked
model: {family: llama, layers: 1, hidden: 32, heads: 4, ffn_hidden: 48, vocab: 1000}
cluster: {nodes: 1, gpus_per_node: 1, device: host}
batch: {global: 4, micro: 4, sequence: 8}
optimizer: {lr: 1e-3}
data:
  train: [one.bin, two.bin]
  validation: [validation.bin]
run: {steps: 10}
)";

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class CheckDataTest : public testing::Test {
 protected:
  CheckDataTest() {
    std::ofstream(Path("job.yaml")) << kJob;
    Write<uint16_t>("one.bin", 1000);
    Write<uint16_t>("two.bin", 601);
    Write<uint16_t>("validation.bin", 9);
  }

  static std::string Path(const std::string& name) { return testing::TempDir() + name; }

  template <typename T>
  static void Write(const std::string& name, int tokens) {
    std::ofstream out(Path(name), std::ios::binary);
    for (int i = 0; i < tokens; ++i) {
      const T token = static_cast<T>(i % 1000);
      out.write(reinterpret_cast<const char*>(&token), sizeof(token));
    }
  }

  static Outcome Check(const std::vector<std::string>& flags) {
    std::vector<std::string> args = {Path("job.yaml")};
    args.insert(args.end(), flags.begin(), flags.end());
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunCheck(args, out, err);
    return {code, out.str(), err.str()};
  }
};

TEST_F(CheckDataTest, SaysHowMuchDataThereIs) {
  const Outcome outcome = Check({"--data"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  // (1601 - 1) / 8 = 200 windows, and 10 steps of 4 sequences.
  EXPECT_THAT(outcome.out,
              HasSubstr("\n  data.train: 1,601 tokens in 2 files, 200 windows, each used 0.20 "
                        "times\n  data.validation: 9 tokens in 1 file, 1 window\n"));
}

TEST_F(CheckDataTest, WithoutTheFlagNoDataIsRead) {
  std::ofstream(Path("one.bin")) << "PAR1";
  const Outcome outcome = Check({});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, Not(HasSubstr("data.train")));
}

TEST_F(CheckDataTest, AllErrorsAtOnceAtTheirKeys) {
  Write<int32_t>("two.bin", 600);
  std::ofstream(Path("validation.bin")) << "PAR1 and more";
  const Outcome outcome = Check({"--data"});
  EXPECT_EQ(outcome.code, kExitTrainingFault);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("error[PL0601]: data.train:"));
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:7:"));
  EXPECT_THAT(outcome.err, HasSubstr("holds uint32 numbers, read as uint16"));
  EXPECT_THAT(outcome.err, HasSubstr("error[PL0601]: data.validation:"));
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:8:"));
  EXPECT_THAT(outcome.err, HasSubstr("is a Parquet file"));
}

TEST_F(CheckDataTest, ForPrograms) {
  Write<int32_t>("two.bin", 600);
  const Outcome outcome = Check({"--data", "--format=json"});
  EXPECT_EQ(outcome.code, kExitTrainingFault);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["diagnostics"][0]["code"], "PL0601");
  EXPECT_EQ(json["diagnostics"][0]["line"], 7);
}

TEST_F(CheckDataTest, WarningsPass) {
  std::ofstream(Path("validation.bin"), std::ios::binary) << std::string(600, '\x01');
  const Outcome outcome = Check({"--data"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.err, HasSubstr("warning[PL0602]: data.validation:"));
  EXPECT_THAT(outcome.err, HasSubstr("all of its 300 tokens are 257"));
}

TEST_F(CheckDataTest, ErrorsOfTheJobComeFirst) {
  std::ofstream(Path("one.bin")) << "PAR1";
  const Outcome outcome = Check({"--data", "--set", "model.heads=5"});
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, Not(HasSubstr("PL0601")));
}

}  // namespace
}  // namespace planc
