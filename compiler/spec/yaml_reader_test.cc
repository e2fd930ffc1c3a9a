#include "compiler/spec/yaml_reader.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace planc {
namespace {

std::optional<Node> Read(const std::string& text, DiagnosticList& diagnostics) {
  return ReadYaml("f.yaml", text, /*line_offset=*/0, diagnostics);
}

TEST(YamlReaderTest, RemembersPlaces) {
  DiagnosticList diagnostics;
  const std::optional<Node> root = Read("a: 12\nb:\n  - x\n  - 'y z'\nc:\n", diagnostics);
  ASSERT_TRUE(root.has_value());
  const Node* a = root->Find("a");
  EXPECT_EQ(a->text, "12");
  EXPECT_EQ(PlaceOf(a->span), "f.yaml:1:4");
  EXPECT_EQ(a->span.length, 2);
  EXPECT_FALSE(a->quoted);
  const Node* b = root->Find("b");
  ASSERT_EQ(b->items.size(), 2u);
  EXPECT_EQ(PlaceOf(b->items[1].span), "f.yaml:4:5");
  EXPECT_EQ(b->items[1].span.length, 5);
  EXPECT_TRUE(b->items[1].quoted);
  // An empty value has the place of its key.
  EXPECT_EQ(root->Find("c")->kind, Node::Kind::kNull);
  EXPECT_EQ(PlaceOf(root->Find("c")->span), "f.yaml:5:1");
}

TEST(YamlReaderTest, LineOffsetMovesPlaces) {
  DiagnosticList diagnostics;
  const std::optional<Node> root = ReadYaml("f", "a: b", /*line_offset=*/6, diagnostics);
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(PlaceOf(root->Find("a")->span), "f:7:4");
}

TEST(YamlReaderTest, ReportsSeveralProblemsAtOnce) {
  DiagnosticList diagnostics;
  EXPECT_FALSE(Read("a: &x 1\na: 2\nb: !t 3\n[k]: 4\n", diagnostics).has_value());
  EXPECT_EQ(diagnostics.ErrorCount(), 4u);
}

TEST(YamlReaderTest, DeepNestingStops) {
  DiagnosticList diagnostics;
  EXPECT_FALSE(Read(std::string(100000, '['), diagnostics).has_value());
  ASSERT_EQ(diagnostics.ErrorCount(), 1u);
  EXPECT_EQ(diagnostics.entries()[0].code, DiagnosticCode::kTooDeep);
  DiagnosticList map_diagnostics;
  std::string text;
  for (int level = 0; level < 200; ++level) text += std::string(level, ' ') + "a:\n";
  EXPECT_FALSE(Read(text, map_diagnostics).has_value());
  EXPECT_EQ(map_diagnostics.entries()[0].code, DiagnosticCode::kTooDeep);
}

TEST(YamlReaderTest, MergePutsMapsTogether) {
  DiagnosticList diagnostics;
  std::optional<Node> base = Read("a: {x: 1, y: 2}\nl: [1, 2]\n", diagnostics);
  const std::optional<Node> over = Read("a: {y: 3, z: 4}\nl: [9]\nn: 5\n", diagnostics);
  ASSERT_TRUE(base.has_value() && over.has_value());
  MergeInto(*base, *over);
  EXPECT_EQ(base->Find("a")->entries.size(), 3u);
  EXPECT_EQ(base->Find("a")->Find("x")->text, "1");
  EXPECT_EQ(base->Find("a")->Find("y")->text, "3");
  ASSERT_EQ(base->Find("l")->items.size(), 1u);
  EXPECT_EQ(base->Find("l")->items[0].text, "9");
  EXPECT_EQ(base->Find("n")->text, "5");
}

}  // namespace
}  // namespace planc
