// What an editor that knows the JSON Schema shows about the jobs of tests/fail: all of them are
// refused by `planc check`, and those that the schema lets pass are listed here, with the reason.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/spec/yaml_reader.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planc/keys/job_reference.h"

namespace planc {
namespace {

using Json = nlohmann::json;

// A value as a reader of YAML 1.2 types it.
Json JsonOf(const Node& node) {
  if (node.kind == Node::Kind::kNull) return nullptr;
  if (node.kind == Node::Kind::kMap) {
    Json object = Json::object();
    for (const Node::Entry& entry : node.entries) object[entry.key] = JsonOf(entry.value);
    return object;
  }
  if (node.kind == Node::Kind::kSequence) {
    Json array = Json::array();
    for (const Node& item : node.items) array.push_back(JsonOf(item));
    return array;
  }
  int64_t whole = 0;
  double real = 0;
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  if (absl::SimpleAtoi(node.text, &whole)) return whole;
  if (node.text.find_first_not_of("+-0123456789.eE") == std::string::npos &&
      absl::SimpleAtod(node.text, &real)) {
    return real;
  }
  return node.text;
}

// The keywords of JSON Schema that the schema of jobs uses; an unknown one fails the test.
class Validator {
 public:
  bool Accepts(const Json& schema, const Json& value) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "then" || keyword == "else") continue;  // with `if`
      if (!Holds(schema, keyword, rule, value)) return false;
    }
    return true;
  }

 private:
  static bool HasType(const std::string& type, const Json& value) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "number") return value.is_number();
    return type == "integer" &&
           (value.is_number_integer() ||
            (value.is_number() && value.get<double>() == static_cast<double>(static_cast<int64_t>(
                                                             value.get<double>()))));
  }

  bool Holds(const Json& schema, const std::string& keyword, const Json& rule, const Json& value) {
    if (keyword == "type") return HasType(rule, value);
    if (keyword == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    if (keyword == "const") return rule == value;
    if (keyword == "not") return !Accepts(rule, value);
    if (keyword == "if") {
      const char* branch = Accepts(rule, value) ? "then" : "else";
      return !schema.contains(branch) || Accepts(schema[branch], value);
    }
    const auto accepts = [&](const Json& inner) { return Accepts(inner, value); };
    if (keyword == "anyOf") return std::any_of(rule.begin(), rule.end(), accepts);
    if (keyword == "allOf") return std::all_of(rule.begin(), rule.end(), accepts);
    if (value.is_number() && keyword.find("inimum") + 1 + keyword.find("aximum") + 1 > 0) {
      if (keyword == "minimum") return value >= rule;
      if (keyword == "maximum") return value <= rule;
      if (keyword == "exclusiveMinimum") return value > rule;
      if (keyword == "exclusiveMaximum") return value < rule;
    }
    return HoldsInside(schema, keyword, rule, value);
  }

  bool HoldsInside(const Json& schema, const std::string& keyword, const Json& rule,
                   const Json& value) {
    if (keyword == "pattern") {
      return !value.is_string() ||
             std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()));
    }
    if (keyword == "minLength")
      return !value.is_string() || value.get<std::string>().size() >= rule;
    if (keyword == "maxLength")
      return !value.is_string() || value.get<std::string>().size() <= rule;
    if (keyword == "minItems") return !value.is_array() || value.size() >= rule;
    if (keyword == "multipleOf") {
      return !value.is_number_integer() || value.get<int64_t>() % rule.get<int64_t>() == 0;
    }
    if (keyword == "maxItems") return !value.is_array() || value.size() <= rule;
    if (keyword == "items") {
      return !value.is_array() || std::all_of(value.begin(), value.end(), [&](const Json& item) {
        return Accepts(rule, item);
      });
    }
    if (keyword == "required") {
      return !value.is_object() || std::all_of(rule.begin(), rule.end(), [&](const Json& name) {
        return value.contains(name.get<std::string>());
      });
    }
    if (keyword == "properties") {
      bool ok = true;
      for (const auto& [name, inner] : rule.items()) {
        if (value.is_object() && value.contains(name)) ok = ok && Accepts(inner, value[name]);
      }
      return ok;
    }
    if (keyword == "additionalProperties") {
      bool ok = true;
      if (!value.is_object()) return ok;
      for (const auto& [name, inner] : value.items())
        ok = ok && schema["properties"].contains(name);
      return ok;
    }
    const std::set<std::string> silent = {
        "$schema", "title",   "$comment",         "description",     "default",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
    EXPECT_TRUE(silent.count(keyword) > 0) << keyword;
    return true;
  }
};

Json ReadJob(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  DiagnosticList problems;
  const std::optional<Node> root = ReadYaml(path, text.str(), 0, problems);
  return root.has_value() ? JsonOf(*root) : Json();
}

// Jobs of tests/fail that the schema lets pass: only equations between keys, warnings, includes and
// overrides are left to `planc check`.
const std::set<std::string>& Passing() {
  static const auto* const kPassing = new std::set<std::string>{
      "pl0001_include_missing",
      "pl0012_include_cycle",
      "pl0014_too_many_includes",
      "pl0015_bad_set",
      "pl0105_bad_number",
      "pl0201_world_product",
      "pl0202_auto_does_not_divide",
      "pl0203_world_too_large",
      "pl0204_tensor_heads",
      "pl0205_tensor_kv_heads",
      "pl0206_tensor_ffn",
      "pl0207_kv_head_groups",
      "pl0208_head_product",
      "pl0210_heads_do_not_divide_hidden",
      "pl0211_batch_product",
      "pl0212_sequence_shards",
      "pl0214_sequence_too_long",
      "pl0215_too_few_layers",
      "pl0216_stage_count",
      "pl0217_stage_sum",
      "pl0221_interleaved_microbatches",
      "pl0223_warmup_too_long",
      "pl0224_no_decay_steps",
      "pl0229_token_bytes_vocab",
      "pl0230_zero_no_effect",
      "pl0231_model_too_large",
      "pl0232_empty_stage",
      "pl0234_no_effect",
  };
  return *kPassing;
}

TEST(SchemaCountTest, WhatPlancRefusesTheEditorRefuses) {
  const Json schema = Json::parse(JobJsonSchema());
  int refused = 0;
  std::set<std::string> passing;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fail")) {
    if (entry.path().extension() != ".yaml") continue;
    // A file that is no YAML, or has more than one document, is null here: refused as well.
    if (Validator().Accepts(schema, ReadJob(entry.path().string()))) {
      passing.insert(entry.path().stem().string());
    } else {
      ++refused;
    }
  }
  EXPECT_EQ(passing, Passing());
  RecordProperty("refused", refused);
}

TEST(SchemaCountTest, AGoodJobPasses) {
  const Json schema = Json::parse(JobJsonSchema());
  EXPECT_TRUE(Validator().Accepts(schema, ReadJob("jobs/quickstart.yaml")));
}

}  // namespace
}  // namespace planc
