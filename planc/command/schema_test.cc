#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/spec/job_schema.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planc/commands.h"

namespace planc {
namespace {

std::string Schema(const std::vector<std::string>& args, int expected_code) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunSchema(args, out, err), expected_code) << err.str();
  return out.str();
}

// The schema of the key at `path`.
nlohmann::json At(const nlohmann::json& schema, const std::string& path) {
  nlohmann::json current = schema;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    current = nlohmann::json(current.at("properties").at(part));
  }
  return current;
}

TEST(SchemaTest, HoldsEveryKeyWithItsMeaning) {
  const auto schema = nlohmann::json::parse(Schema({}, kExitOk));
  for (const JobKey& key : AllJobKeys()) {
    const nlohmann::json entry = At(schema, key.path);
    EXPECT_EQ(entry["description"].get<std::string>().find(key.key->doc()), 0u) << key.path;
    EXPECT_EQ(entry.contains("default"), key.key->has_default_()) << key.path;
  }
}

TEST(SchemaTest, RefusesUnknownKeysInEverySection) {
  const auto schema = nlohmann::json::parse(Schema({"--format=json"}, kExitOk));
  for (const JobSection& section : AllJobSections()) {
    const nlohmann::json entry = section.path.empty() ? schema : At(schema, section.path);
    EXPECT_EQ(entry["additionalProperties"], false) << section.path;
  }
}

TEST(SchemaTest, TypesRangesAndDefaults) {
  const auto schema = nlohmann::json::parse(Schema({}, kExitOk));
  const nlohmann::json axis = At(schema, "mesh.dp_shard");
  EXPECT_EQ(axis["anyOf"][0]["type"], "integer");
  EXPECT_EQ(axis["anyOf"][0]["minimum"], 1);
  EXPECT_EQ(axis["anyOf"][1]["pattern"], "^[0-9]+(\\.[0-9]+)?(k|M|G|Ki|Mi|Gi)$");
  EXPECT_EQ(axis["anyOf"][2]["const"], "auto");
  EXPECT_EQ(axis["default"], 1);
  EXPECT_EQ(At(schema, "optimizer.betas")["default"], (std::vector<double>{0.9, 0.95}));
  EXPECT_EQ(At(schema, "optimizer.epsilon")["exclusiveMinimum"], 0);
  EXPECT_EQ(At(schema, "data.train")["minItems"], 1);
  EXPECT_EQ(At(schema, "recompute")["default"], "none");
}

TEST(SchemaTest, JobReferenceIsCurrent) {
  std::ifstream stream("docs/job_reference.md");
  std::ostringstream committed;
  committed << stream.rdbuf();
  EXPECT_EQ(Schema({"--format=markdown"}, kExitOk), committed.str())
      << "write it anew: planc schema --format=markdown > docs/job_reference.md";
}

TEST(SchemaTest, WrongUseIsReported) {
  Schema({"--format=xml"}, kExitJobError);
  Schema({"job.yaml"}, kExitJobError);
}

}  // namespace
}  // namespace planc
