#include "runtime/metrics/progress.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace planc {
namespace {

StepMetrics Metrics() {
  StepMetrics metrics;
  metrics.step = 120;
  metrics.loss = 3.21451;
  metrics.grad_norm = 0.8123;
  metrics.lr = 2.9e-4;
  metrics.step_seconds = 0.2;
  metrics.tokens_per_second = 41234;
  return metrics;
}

TEST(ProgressTest, Line) {
  StepMetrics metrics = Metrics();
  EXPECT_EQ(ProgressLine(metrics, 1000),
            "step  120/1000  loss 3.2145  grad 0.812  lr 2.90e-04  41.2k tok/s  eta 2m56s");
  metrics.mfu = 0.381;
  metrics.validation_loss = 3.5;
  metrics.step = 1000;
  EXPECT_EQ(ProgressLine(metrics, 1000),
            "step 1000/1000  loss 3.2145  valid 3.5000  41.2k tok/s  mfu 38.1%");
}

TEST(ProgressTest, AtMost100Columns) {
  StepMetrics metrics = Metrics();
  metrics.step = 999999;
  metrics.loss = metrics.grad_norm = 12345.678;
  metrics.validation_loss = 12345.678;
  metrics.mfu = 0.999;
  metrics.step_seconds = 100;
  EXPECT_LE(ProgressLine(metrics, 1000000).size(), 100u);
  metrics.validation_loss.reset();
  EXPECT_LE(ProgressLine(metrics, 1000000).size(), 100u);
}

TEST(ProgressTest, NumbersKeepTheirWidth) {
  StepMetrics metrics = Metrics();
  metrics.grad_norm = 1.5;
  metrics.tokens_per_second = 21000;
  EXPECT_EQ(ProgressLine(metrics, 120),
            "step 120/120  loss 3.2145  grad 1.50  lr 2.90e-04  21.0k tok/s");
  metrics.grad_norm = 0.9996;
  metrics.tokens_per_second = 999700;
  EXPECT_EQ(ProgressLine(metrics, 120),
            "step 120/120  loss 3.2145  grad 1.00  lr 2.90e-04  1.00M tok/s");
  metrics.grad_norm = 12345;
  metrics.tokens_per_second = 123;
  EXPECT_EQ(ProgressLine(metrics, 120),
            "step 120/120  loss 3.2145  grad 1.23e+04  lr 2.90e-04  123 tok/s");
}

TEST(ProgressTest, Durations) {
  EXPECT_EQ(DurationText(0.4), "0s");
  EXPECT_EQ(DurationText(59.6), "1m00s");
  EXPECT_EQ(DurationText(3599), "59m59s");
  EXPECT_EQ(DurationText(18420), "5h07m");
  EXPECT_EQ(DurationText(86400 * 12 + 3600 * 3), "12d03h");
}

TEST(ProgressTest, NoEscapeCodesUnlessOnATerminal) {
  std::ostringstream plain;
  {
    Progress progress(plain, false, 1000);
    progress.Show(Metrics());
    progress.Note("a note");
    progress.Show(Metrics());
  }
  const std::string line = ProgressLine(Metrics(), 1000);
  EXPECT_EQ(plain.str(), line + "\na note\n" + line + "\n");

  std::ostringstream live;
  {
    Progress progress(live, true, 1000);
    progress.Show(Metrics());
    progress.Show(Metrics());
    progress.Note("a note");
    progress.Show(Metrics());
  }
  const std::string rewrite = "\r\x1b[2K";
  EXPECT_EQ(live.str(),
            rewrite + line + rewrite + line + rewrite + "a note\n" + rewrite + line + "\n");
}

}  // namespace
}  // namespace planc
