#include "compiler/diagnostics/diagnostic.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(DiagnosticTest, TableIsCompleteAndUnique) {
  std::set<std::string> ids;
  for (const DiagnosticInfo& info : AllDiagnostics()) {
    EXPECT_TRUE(ids.insert(info.id).second) << info.id;
    EXPECT_EQ(info.id.size(), 6u) << info.id;
    for (const std::string* text : {&info.rule, &info.why, &info.fix}) {
      ASSERT_FALSE(text->empty()) << info.id;
      EXPECT_EQ(text->back(), '.') << info.id << ": " << *text;
    }
    ASSERT_FALSE(info.title.empty()) << info.id;
    EXPECT_NE(info.title.back(), '.') << info.id;
    EXPECT_EQ(&InfoOf(info.code), &info);
  }
  EXPECT_GT(ids.size(), 50u);
}

TEST(DiagnosticTest, FindsByIdInAnyCase) {
  ASSERT_NE(FindDiagnostic("pl0101"), nullptr);
  EXPECT_EQ(FindDiagnostic("pl0101")->code, DiagnosticCode::kUnknownKey);
  EXPECT_EQ(FindDiagnostic("PL9999"), nullptr);
  EXPECT_EQ(FindDiagnostic(""), nullptr);
}

TEST(DiagnosticTest, SortsByPositionAndMergesEqualEntries) {
  DiagnosticList list;
  list.Add(DiagnosticCode::kUnknownKey, Span{"b.yaml", 9, 1, 1}, "later");
  list.Add(DiagnosticCode::kUnknownKey, Span{"b.yaml", 2, 7, 1}, "second");
  list.Add(DiagnosticCode::kWrongType, Span{"b.yaml", 2, 3, 1}, "first");
  list.Add(DiagnosticCode::kUnknownKey, Span{"b.yaml", 2, 7, 1}, "second");
  list.Add(DiagnosticCode::kUnknownKey, Span{"a.yaml", 1, 1, 1}, "other file");
  list.Sort();
  ASSERT_EQ(list.entries().size(), 4u);
  EXPECT_EQ(list.entries()[0].message, "first");
  EXPECT_EQ(list.entries()[1].message, "second");
  EXPECT_EQ(list.entries()[2].message, "later");
  EXPECT_EQ(list.entries()[3].message, "other file");
}

TEST(DiagnosticTest, CountsBySeverity) {
  DiagnosticList list;
  EXPECT_FALSE(list.HasErrors());
  list.Add(DiagnosticCode::kNoDecaySteps, Span{}, "a warning");
  EXPECT_FALSE(list.HasErrors());
  list.Add(DiagnosticCode::kUnknownKey, Span{}, "an error");
  EXPECT_EQ(list.ErrorCount(), 1u);
  EXPECT_EQ(list.WarningCount(), 1u);
}

TEST(DiagnosticTest, SourceLines) {
  const SourceTexts sources = {{"a", "one\r\ntwo\n\nfour"}};
  EXPECT_EQ(SourceLine(sources, "a", 1), "one");
  EXPECT_EQ(SourceLine(sources, "a", 2), "two");
  EXPECT_EQ(SourceLine(sources, "a", 3), "");
  EXPECT_EQ(SourceLine(sources, "a", 4), "four");
  EXPECT_EQ(SourceLine(sources, "a", 5), std::nullopt);
  EXPECT_EQ(SourceLine(sources, "a", 0), std::nullopt);
  EXPECT_EQ(SourceLine(sources, "b", 1), std::nullopt);
}

}  // namespace
}  // namespace planc
