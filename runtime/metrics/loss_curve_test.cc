#include "runtime/metrics/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/metrics/metrics_writer.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<StepMetrics> Rows(int count) {
  std::vector<StepMetrics> rows;
  for (int i = 1; i <= count; ++i) {
    StepMetrics row;
    row.step = i;
    row.loss = 1.5 + 4 * std::exp(-i / 30.0);
    if (i % 50 == 0) row.validation_loss = row.loss + 0.1;
    rows.push_back(row);
  }
  return rows;
}

long Count(const std::string& text, const std::string& word) {
  long count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(LossCurveTest, HasBothCurvesAndLabels) {
  const std::string svg = LossCurveSvg(Rows(200), "a < b");
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
  EXPECT_THAT(svg, HasSubstr("loss (nats per token)"));
  EXPECT_THAT(svg, HasSubstr("training, last 1.5051"));
  EXPECT_THAT(svg, HasSubstr("validation, last 1.6051"));
  EXPECT_THAT(svg, HasSubstr(">200</text>"));
  EXPECT_EQ(Count(svg, "<circle"), 4);
  EXPECT_EQ(Count(svg, "<polyline"), 2);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LossCurveTest, ManyStepsAreThinnedOut) {
  const std::string svg = LossCurveSvg(Rows(100000), "long");
  EXPECT_LT(Count(svg, ","), 2100 + 2 * 2000);
}

TEST(LossCurveTest, EmptyAndNonFiniteRows) {
  EXPECT_THAT(LossCurveSvg({}, "empty"), HasSubstr("</svg>"));
  std::vector<StepMetrics> rows = Rows(3);
  rows[2].loss = std::nan("");
  EXPECT_THAT(LossCurveSvg(rows, "nan loss"), Not(HasSubstr("nan,")));
}

TEST(LossCurveTest, WritesBesideTheMetrics) {
  const std::string directory = testing::TempDir() + "curve";
  {
    auto writer = MetricsWriter::Open(directory, 0, 1);
    ASSERT_TRUE(writer.ok());
    for (const StepMetrics& row : Rows(60)) ASSERT_TRUE((*writer)->Write(row, 1).ok());
  }
  ASSERT_TRUE(WriteLossCurve(directory, "run").ok());
  std::ostringstream svg;
  svg << std::ifstream(directory + "/loss.svg").rdbuf();
  EXPECT_EQ(svg.str(), LossCurveSvg(Rows(60), "run"));
  EXPECT_FALSE(WriteLossCurve(testing::TempDir() + "nowhere", "run").ok());
}

}  // namespace
}  // namespace planc
