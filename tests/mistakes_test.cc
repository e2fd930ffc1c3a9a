// Mistakes that people make in job files, by kind, and what they are told. tests/mistakes/kinds.txt
// has the jobs as edits of one good job, tests/mistakes/messages.txt the messages. After an
// intended change, read the difference as somebody would who made the mistake:
//   bazel run --config=opt //tests:mistakes_test -- --update=$PWD
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/diagnostics/columns.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace planc {
namespace {

struct Mistake {
  std::string name;
  std::vector<std::pair<std::string, std::string>> edits;  // old, new
};

// The cases of kinds.txt; the first is the good job itself.
std::vector<Mistake> ReadMistakes() {
  std::ifstream stream("tests/mistakes/kinds.txt");
  std::vector<Mistake> mistakes;
  std::string line;
  while (std::getline(stream, line)) {
    std::string value;
    const std::string mark = line.substr(0, 4);
    if (mark == "=== ") {
      mistakes.push_back({line.substr(4), {}});
    } else if (mark == "--- ") {
      EXPECT_TRUE(absl::CUnescape(line.substr(4), &value)) << line;
      mistakes.back().edits.emplace_back(value, "");
    } else if (mark == "+++ ") {
      EXPECT_TRUE(absl::CUnescape(line.substr(4), &value)) << line;
      if (mistakes.size() == 1) mistakes.back().edits.emplace_back("ALL", "");
      mistakes.back().edits.back().second = value;
    }
  }
  return mistakes;
}

std::string Edited(const std::string& good, const Mistake& mistake) {
  std::string text = good;
  for (const auto& [before, after] : mistake.edits) {
    if (before == "ALL") {
      text = after;
      continue;
    }
    const size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << mistake.name << ": " << before;
    if (at != std::string::npos) text.replace(at, before.size(), after);
  }
  return text;
}

LoadResult Load(const std::string& text) {
  return LoadJobText("job.yaml", {{"job.yaml", text}}, {});
}

TEST(MistakesTest, EveryKindIsToldAsReviewed) {
  const std::vector<Mistake> mistakes = ReadMistakes();
  ASSERT_GT(mistakes.size(), 100u);
  const std::string good = mistakes[0].edits[0].second;
  ASSERT_TRUE(Load(good).ok);
  std::string messages;
  std::set<std::string> names;
  for (size_t i = 1; i < mistakes.size(); ++i) {
    const LoadResult result = Load(Edited(good, mistakes[i]));
    EXPECT_FALSE(result.ok) << mistakes[i].name;
    EXPECT_TRUE(names.insert(mistakes[i].name).second) << mistakes[i].name;
    absl::StrAppend(&messages, "=== ", mistakes[i].name, "\n",
                    RenderText(result.diagnostics, result.sources, /*colour=*/false), "\n");
  }
  std::istringstream lines(messages);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(CellCount(line), 100) << line;
  CompareOrUpdateGolden("tests/mistakes/messages.txt", messages);
}

// The job with any of the proposals has fewer errors: what is proposed was tried.
TEST(MistakesTest, ProposalsPass) {
  const std::vector<Mistake> mistakes = ReadMistakes();
  int tried = 0;
  for (const Mistake& mistake : mistakes) {
    const std::string text = Edited(mistakes[0].edits[0].second, mistake);
    const LoadResult result = Load(text);
    for (const Diagnostic& diagnostic : result.diagnostics.entries()) {
      for (const Proposal& proposal : diagnostic.proposals) {
        std::vector<std::string> sets;
        for (const Change& change : proposal) {
          sets.push_back(absl::StrCat(change.key, "=", change.value));
        }
        const LoadResult after = LoadJobText("job.yaml", {{"job.yaml", text}}, sets);
        EXPECT_LT(after.diagnostics.ErrorCount(), result.diagnostics.ErrorCount())
            << mistake.name << ": " << absl::StrJoin(sets, " ");
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 10);
}

}  // namespace
}  // namespace planc
