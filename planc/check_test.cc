#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planc/commands.h"

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

TEST(CheckTest, WrongUseIsReported) {
  EXPECT_EQ(Check({}).code, kExitJobError);
  EXPECT_EQ(Check({kGood, "--format=xml"}).code, kExitJobError);
  EXPECT_EQ(Check({kGood, "--wrong"}).code, kExitJobError);
  const Outcome missing = Check({"no_such_job.yaml"});
  EXPECT_EQ(missing.code, kExitJobError);
  EXPECT_NE(missing.err.find("PL0001"), std::string::npos);
}

}  // namespace
}  // namespace planc
