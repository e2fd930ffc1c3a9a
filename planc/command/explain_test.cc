#include <sstream>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/job_schema.h"
#include "gtest/gtest.h"
#include "planc/commands.h"

namespace planc {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome Explain(const std::string& name) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunExplain({name}, out, err);
  return {code, out.str(), err.str()};
}

void ExpectFits(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ExplainTest, EveryCodeIsExplained) {
  for (const DiagnosticInfo& info : AllDiagnostics()) {
    const Outcome outcome = Explain(info.id);
    EXPECT_EQ(outcome.code, kExitOk) << info.id;
    EXPECT_NE(outcome.out.find(info.title), std::string::npos) << info.id;
    ExpectFits(outcome.out);
  }
}

TEST(ExplainTest, EveryKeyAndSectionIsExplained) {
  for (const JobKey& key : AllJobKeys()) {
    const Outcome outcome = Explain(key.path);
    EXPECT_EQ(outcome.code, kExitOk) << key.path;
    EXPECT_NE(outcome.out.find("  unset "), std::string::npos) << outcome.out;
    ExpectFits(outcome.out);
  }
  for (const JobSection& section : AllJobSections()) {
    if (section.path.empty()) continue;
    const Outcome outcome = Explain(section.path);
    EXPECT_EQ(outcome.code, kExitOk) << section.path;
    ExpectFits(outcome.out);
  }
}

TEST(ExplainTest, AKeyShowsRangeDefaultAndChoices) {
  EXPECT_EQ(Explain("parallelism.zero").out,
            "parallelism.zero: What dp_shard shards: 1 optimizer state, 2 also gradients, 3 also "
            "parameters.\n"
            "  type                whole number\n"
            "  range               >= 1 and <= 3\n"
            "  unset               1 (default)\n");
  EXPECT_NE(Explain("recompute").out.find("selective: "), std::string::npos);
}

TEST(ExplainTest, TheLastPartOfAPathIsEnough) {
  EXPECT_EQ(Explain("tp").out, Explain("mesh.tp").out);
  // There are two of these.
  const std::string directories = Explain("directory").out;
  EXPECT_NE(directories.find("checkpoint.directory: "), std::string::npos);
  EXPECT_NE(directories.find("run.directory: "), std::string::npos);
}

TEST(ExplainTest, UnknownNamesGetASuggestion) {
  const Outcome outcome = Explain("mesh.dp_shrad");
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_NE(outcome.err.find("mesh.dp_shard"), std::string::npos) << outcome.err;
  EXPECT_EQ(Explain("PL0999").code, kExitJobError);
  EXPECT_EQ(Explain("").code, kExitJobError);
}

}  // namespace
}  // namespace planc
