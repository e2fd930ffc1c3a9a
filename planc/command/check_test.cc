#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planc/commands.h"
#include "schemas/plan_io.h"

namespace planc {
namespace {

constexpr char kGood[] = "jobs/quickstart.yaml";
constexpr char kBad[] = "tests/fail/pl0204_tensor_heads.yaml";
constexpr char kWarned[] = "tests/fail/pl0224_no_decay_steps.yaml";

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome Check(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCheck(args, out, err);
  return {code, out.str(), err.str()};
}

TEST(CheckTest, AGoodJobIsOneLine) {
  const Outcome outcome = Check({kGood});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("jobs/quickstart.yaml: ok, "), std::string::npos) << outcome.out;
}

TEST(CheckTest, ABadJobExitsWith2) {
  const Outcome outcome = Check({kBad});
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("error[PL0204]"), std::string::npos) << outcome.err;
}

TEST(CheckTest, WarningsAreShownButPass) {
  const Outcome outcome = Check({kWarned});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_NE(outcome.err.find("warning[PL0224]"), std::string::npos) << outcome.err;
}

TEST(CheckTest, SetReplacesAValue) {
  EXPECT_EQ(Check({kGood, "--set", "mesh.tp=3"}).code, kExitJobError);
  EXPECT_EQ(Check({kGood, "--set=run.steps=70"}).code, kExitOk);
}

TEST(CheckTest, SeveralJobsAreAllChecked) {
  const Outcome outcome = Check({kBad, kGood, kWarned, "--format=json"});
  EXPECT_EQ(outcome.code, kExitJobError);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["warnings"], 1);
  EXPECT_EQ(json["diagnostics"][1]["file"], kWarned);
}

TEST(CheckTest, OtherFormats) {
  const auto sarif = nlohmann::json::parse(Check({kBad, "--format=sarif"}).out);
  EXPECT_EQ(sarif["runs"][0]["results"].size(), 1u);
  const std::string github = Check({kBad, "--format=github"}).out;
  EXPECT_EQ(github.substr(0, 13), "::error file=");
}

// A model of 70 G parameters on eight devices.
constexpr char kTooLarge[] = R"(job: too-large
model: {preset: llama3.1-70b}
cluster: {nodes: 1, gpus_per_node: 8, device: h100-sxm-80gb}
mesh: {dp_shard: 8}
parallelism: {zero: 3}
batch: {global: 16, micro: 1, sequence: 8192}
recompute: full
optimizer: {lr: 3e-4}
data: {train: [tokens.bin], format: tokens, token_bytes: 4}
run: {steps: 1000}
)";

std::string WriteJob(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(CheckTest, AStallTimeoutBelowThePredictionIsAJobError) {
  const std::string job = WriteJob("hasty.yaml", kTooLarge);
  const Outcome outcome =
      Check({job, "--set", "cluster.device=host", "--set", "run.stall_timeout=1s"});
  EXPECT_EQ(outcome.code, kExitJobError) << outcome.err;
  EXPECT_NE(outcome.err.find("error[PL0302]"), std::string::npos) << outcome.err;
}

TEST(CheckTest, AJobThatDoesNotFitExitsWith3) {
  const std::string job = WriteJob("too_large.yaml", kTooLarge);
  const Outcome outcome = Check({job});
  EXPECT_EQ(outcome.code, kExitDoesNotFit) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("error[PL0301]"), std::string::npos) << outcome.err;
  // The cluster decides: 12 bytes of master weights and moments for each parameter.
  EXPECT_NE(outcome.err.find("too_large.yaml:3:18"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("at least 2 nodes of 8"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("alone need "), std::string::npos) << outcome.err;
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(" --> ", 0) == 0) continue;  // a long path stays whole
    EXPECT_LE(line.size(), 100u) << line;
  }
  // The plan command has the same verdict.
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunPlan({job}, out, err), kExitDoesNotFit);
  const std::string verdict = outcome.err.substr(0, outcome.err.find("  = help"));
  EXPECT_EQ(err.str().substr(0, verdict.size()), verdict);
}

TEST(CheckTest, TheChangesThatAreProposedFit) {
  const std::string job = WriteJob("too_large.yaml", kTooLarge);
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {},
           {"model.preset=llama3.1-8b", "parallelism.zero=1", "recompute=none"},
           {"cluster.memory=40GiB", "model.preset=llama3.2-3b", "parallelism.zero=1",
            "recompute=none"}}) {
    std::vector<std::string> args = {job, "--format=json"};
    for (const std::string& set : sets) args.push_back("--set=" + set);
    const Outcome outcome = Check(args);
    EXPECT_EQ(outcome.code, kExitDoesNotFit);
    const auto json = nlohmann::json::parse(outcome.out);
    int proposals = 0;
    for (const auto& diagnostic : json["diagnostics"]) {
      if (diagnostic["code"] != "PL0301") continue;
      EXPECT_GT(diagnostic["line"], 0);
      for (const std::string note : diagnostic["notes"]) {
        if (note.rfind("fits, with ", 0) != 0) continue;
        ++proposals;
        std::vector<std::string> changed = args;
        std::istringstream words(note.substr(11, note.rfind(": ") - 11));
        for (std::string word; words >> word;) changed.push_back("--set=" + word);
        const Outcome fits = Check(changed);
        EXPECT_EQ(fits.code, kExitOk) << note << "\n" << fits.out;
      }
    }
    EXPECT_GT(proposals, 0) << outcome.out;
  }
}

TEST(CheckTest, MemoryIsARuleInAllFormatsAndForEachJob) {
  const std::string job = WriteJob("too_large.yaml", kTooLarge);
  const auto sarif = nlohmann::json::parse(Check({job, "--format=sarif"}).out);
  EXPECT_NE(sarif.dump().find("PL0301"), std::string::npos);
  const Outcome github = Check({job, "--format=github"});
  EXPECT_EQ(github.code, kExitDoesNotFit);
  EXPECT_NE(github.out.find("::error file="), std::string::npos) << github.out;
  const Outcome both = Check({kGood, job, job, "--format=json"});
  EXPECT_EQ(both.code, kExitDoesNotFit);
  EXPECT_EQ(nlohmann::json::parse(both.out)["errors"], 2);
  // What is wrong outweighs what does not fit, and the memory of a wrong job is not asked for.
  EXPECT_EQ(Check({job, kBad}).code, kExitJobError);
  const Outcome wrong = Check({job, "--set=mesh.tp=3"});
  EXPECT_EQ(wrong.code, kExitJobError);
  EXPECT_EQ(wrong.err.find("PL0301"), std::string::npos) << wrong.err;
}

TEST(CheckTest, JobsForGpusAreNotedAsNotRunnable) {
  const Outcome gpus = Check({"jobs/llama3_8b_fsdp.yaml"});
  EXPECT_EQ(gpus.code, kExitOk);
  EXPECT_NE(gpus.err.find("warning[PL0257]"), std::string::npos) << gpus.err;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunPlan({"jobs/llama3_8b_fsdp.yaml"}, out, err), kExitOk);
  EXPECT_NE(err.str().find("warning[PL0257]"), std::string::npos) << err.str();
}

TEST(CheckTest, FilesThatAreNoJobsAreCalledWhatTheyAre) {
  const std::string folder = testing::TempDir();
  const std::vector<std::pair<std::string, std::string>> files = {
      {std::string(kPlanMagic) + "1 0 0\n", "is a plan, not a job"},
      {std::string("ELF\0", 4), "is binary data"},
      {std::string(1 << 21, '\0'), "is binary data"}};
  for (const auto& [bytes, what] : files) {
    const std::string path = folder + "/no_job.yaml";
    std::ofstream(path, std::ios::binary) << bytes;
    const Outcome outcome = Check({path});
    EXPECT_EQ(outcome.code, kExitJobError);
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
  }
}

TEST(CheckTest, OverridesHaveNoFile) {
  const Outcome github = Check({kGood, "--set", "mesh.tpp=2", "--format=github"});
  EXPECT_EQ(github.out.find("file="), std::string::npos) << github.out;
  EXPECT_NE(github.out.find("--set mesh.tpp=2: there is no key"), std::string::npos) << github.out;
  const auto sarif =
      nlohmann::json::parse(Check({kGood, "--set", "mesh.tpp=2", "--format=sarif"}).out);
  EXPECT_FALSE(sarif["runs"][0]["results"][0]["locations"][0].contains("physicalLocation"));
}

TEST(CheckTest, WrongUseIsReported) {
  EXPECT_EQ(Check({}).code, kExitJobError);
  EXPECT_EQ(Check({kGood, "--format=xml"}).code, kExitJobError);
  EXPECT_EQ(Check({kGood, "--wrong"}).code, kExitJobError);
  const Outcome missing = Check({"no_such_job.yaml"});
  EXPECT_EQ(missing.code, kExitJobError);
  EXPECT_NE(missing.err.find("PL0001"), std::string::npos);
}

TEST(CheckTest, AFragmentIsNoError) {
  const std::string path = testing::TempDir() + "/part.yaml";
  std::ofstream(path) << "partial: true\nmesh: {tp: 2}\n";
  const Outcome outcome = Check({kGood, path});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_NE(outcome.out.find("fragment: included by others, not checked as a job"),
            std::string::npos)
      << outcome.out;
  std::ofstream(path) << "partial: true\nmesh: {tpp: 2}\n";
  EXPECT_EQ(Check({path}).code, kExitJobError);
}

}  // namespace
}  // namespace planc
