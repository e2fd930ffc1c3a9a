#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/diagnostics/render_json.h"
#include "compiler/diagnostics/render_text.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace planc {
namespace {

const SourceTexts& Sources() {
  static const auto* const kSources =
      new SourceTexts{{"job.yaml", "job: a\nmesh: {dp_shard: 2, tp: 3}\nrun:\n  steps: 5\n"},
                      {"base.yaml", "model:\n  heads: 4\n"}};
  return *kSources;
}

DiagnosticList Example() {
  DiagnosticList list;
  Diagnostic& diagnostic =
      list.Add(DiagnosticCode::kTensorHeads, Span{"job.yaml", 2, 25, 1}, "tp 3 does not divide 4");
  diagnostic.label = "mesh.tp";
  diagnostic.secondary.push_back({Span{"job.yaml", 2, 18, 1}, "mesh.dp_shard"});
  diagnostic.secondary.push_back({Span{"base.yaml", 2, 10, 1}, "model.heads"});
  diagnostic.notes.push_back("a note");
  diagnostic.fix = "mesh.tp: 2 or 4";
  return list;
}

TEST(RenderTest, TextShowsSourceCaretAndHelp) {
  EXPECT_EQ(RenderText(Example(), Sources(), /*colour=*/false),
            "error[PL0204]: tp 3 does not divide 4\n"
            " --> job.yaml:2:25\n"
            "  |\n"
            "2 | mesh: {dp_shard: 2, tp: 3}\n"
            "  |                         ^ mesh.tp\n"
            "  |                  - mesh.dp_shard\n"
            " ::: base.yaml:2:10\n"
            "  |\n"
            "2 |   heads: 4\n"
            "  |          - model.heads\n"
            "  = note: a note\n"
            "  = help: mesh.tp: 2 or 4\n"
            "\n"
            "1 error, 0 warnings; `planc explain PL0204` says more\n");
}

TEST(RenderTest, ColourOnlyWhenAsked) {
  EXPECT_EQ(RenderText(Example(), Sources(), false).find('\x1b'), std::string::npos);
  EXPECT_NE(RenderText(Example(), Sources(), true).find("\x1b[1;31m"), std::string::npos);
}

TEST(RenderTest, NothingForAnEmptyList) { EXPECT_EQ(RenderText({}, Sources(), false), ""); }

TEST(RenderTest, TextStaysInside100Columns) {
  const std::string line = "note: " + std::string(300, 'x') + " y";
  DiagnosticList list;
  std::string message;
  for (int word = 0; word < 60; ++word) message += "word ";
  Diagnostic& diagnostic =
      list.Add(DiagnosticCode::kUnknownKey, Span{"long.yaml", 1, 308, 500}, message);
  diagnostic.notes.push_back(message);
  diagnostic.label = "here";
  const std::string text = RenderText(list, {{"long.yaml", line}}, false);
  for (const std::string& row : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    EXPECT_LE(row.size(), 100u) << row;
  }
  EXPECT_NE(text.find('^'), std::string::npos) << text;
}

TEST(RenderTest, UnknownFilesAndLinesAreNoProblem) {
  DiagnosticList list;
  list.Add(DiagnosticCode::kUnknownKey, Span{"gone.yaml", 7, 3, 1}, "a");
  list.Add(DiagnosticCode::kUnknownKey, Span{}, "b");
  list.Add(DiagnosticCode::kFileUnreadable, Span{"gone.yaml", 0, 0, 0}, "c");
  const std::string text = RenderText(list, {}, false);
  EXPECT_NE(text.find("--> gone.yaml:7:3"), std::string::npos) << text;
}

TEST(RenderTest, JsonHoldsEverything) {
  const auto json = nlohmann::json::parse(RenderJson(Example()));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["errors"], 1);
  const auto& entry = json["diagnostics"][0];
  EXPECT_EQ(entry["code"], "PL0204");
  EXPECT_EQ(entry["line"], 2);
  EXPECT_EQ(entry["column"], 25);
  EXPECT_EQ(entry["secondary"][1]["file"], "base.yaml");
  EXPECT_EQ(entry["fix"], "mesh.tp: 2 or 4");
}

TEST(RenderTest, BytesThatAreNotUtf8AreReplaced) {
  DiagnosticList list;
  list.Add(DiagnosticCode::kUnknownKey, Span{"job.yaml", 1, 1, 1}, "key \xff\xfe");
  EXPECT_TRUE(nlohmann::json::accept(RenderJson(list)));
  EXPECT_TRUE(nlohmann::json::accept(RenderSarif(list)));
}

TEST(RenderTest, SarifNamesRulesAndPlaces) {
  const auto json = nlohmann::json::parse(RenderSarif(Example()));
  EXPECT_EQ(json["version"], "2.1.0");
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "PL0204");
  const auto& result = run["results"][0];
  EXPECT_EQ(result["level"], "error");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startColumn"], 25);
  EXPECT_EQ(result["relatedLocations"].size(), 2u);
}

// A line with an umlaut (1 UTF-16 unit), an emoji (2 units, 2 cells) and a combining accent.
TEST(RenderTest, ColumnsCountCharacters) {
  const std::string line = "job: \u00fc\U0001f600e\u0301 x";
  const SourceTexts sources = {{"job.yaml", line + "\n"}};
  DiagnosticList list;
  list.Add(DiagnosticCode::kUnknownKey, Span{"job.yaml", 1, 11, 1}, "a");
  const std::string text = RenderText(list, sources, /*colour=*/false);
  EXPECT_NE(text.find("1 | " + line + "\n  |           ^\n"), std::string::npos) << text;
  const auto region = nlohmann::json::parse(RenderSarif(
      list, sources))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
  EXPECT_EQ(region["startColumn"], 12);
  EXPECT_EQ(region["endColumn"], 13);
  EXPECT_NE(RenderGithub(list, sources).find("col=11,endColumn=12"), std::string::npos);
}

TEST(RenderTest, SarifNamesFilesByUri) {
  DiagnosticList list;
  list.Add(DiagnosticCode::kUnknownKey, Span{"a b/50%#\u00fc.yaml", 1, 1, 1}, "a");
  list.Add(DiagnosticCode::kUnknownKey, Span{"/x/y.yaml", 1, 1, 1}, "b");
  list.Add(DiagnosticCode::kUnknownKey, Span{}, "c");
  const auto results = nlohmann::json::parse(RenderSarif(list))["runs"][0]["results"];
  const auto uri = [&results](int index) {
    return results[index]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
  };
  EXPECT_EQ(uri(0), "a%20b/50%25%23%C3%BC.yaml");
  EXPECT_EQ(uri(1), "file:///x/y.yaml");
  EXPECT_TRUE(results[2]["locations"].empty());
}

TEST(RenderTest, OverridesAreInNoFile) {
  const SourceTexts sources = {{kSetFile, "run.steps=5\nmesh.tpp=4\n"}};
  DiagnosticList list;
  list.Add(DiagnosticCode::kUnknownKey, Span{kSetFile, 2, 6, 3}, "there is no key mesh.tpp");
  EXPECT_NE(RenderText(list, sources, false).find("command line, --set number 2, column 6"),
            std::string::npos);
  EXPECT_EQ(RenderGithub(list, sources),
            "::error title=PL0101::--set mesh.tpp=4: there is no key mesh.tpp\n");
  const auto location =
      nlohmann::json::parse(RenderSarif(list, sources))["runs"][0]["results"][0]["locations"][0];
  EXPECT_FALSE(location.contains("physicalLocation"));
  EXPECT_EQ(location["logicalLocations"][0]["fullyQualifiedName"], "--set mesh.tpp=4");
}

TEST(RenderTest, GithubEscapesItsOwnSyntax) {
  DiagnosticList list;
  list.Add(DiagnosticCode::kNoDecaySteps, Span{"a,b:c.yaml", 3, 4, 2}, "50%\nmore");
  EXPECT_EQ(RenderGithub(list),
            "::warning file=a%2Cb%3Ac.yaml,line=3,col=4,endColumn=6,title=PL0224::50%25%0Amore\n");
}

}  // namespace
}  // namespace planc
