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

TEST(ProgressTest, NarrowTerminalsLeaveOutWhatMattersLeast) {
  StepMetrics metrics = Metrics();
  metrics.mfu = 0.381;
  const auto line = [&](int columns) { return ProgressLine(metrics, 1000, 0.2, columns); };
  EXPECT_EQ(line(100), ProgressLine(metrics, 1000));
  EXPECT_EQ(line(80), "step  120/1000  loss 3.2145  grad 0.812  41.2k tok/s  mfu 38.1%  eta 2m56s");
  EXPECT_EQ(line(70), "step  120/1000  loss 3.2145  grad 0.812  41.2k tok/s  eta 2m56s");
  EXPECT_EQ(line(40), "step  120/1000  loss 3.2145  eta 2m56s");
  EXPECT_EQ(line(30), "step  120/1000  loss 3.2145");
  EXPECT_EQ(line(20), "step  120/1000");
  EXPECT_EQ(line(5), "step ");
  for (int columns = 1; columns < 120; ++columns) {
    EXPECT_LE(line(columns).size(), static_cast<size_t>(columns));
  }
}

TEST(ProgressTest, AsksForTheWidthBeforeEachLine) {
  std::ostringstream live;
  int width = 41;
  Progress progress(live, true, 1000, [&] { return width; });
  const absl::Time now = absl::UnixEpoch();
  progress.Show(Metrics(), now);
  EXPECT_EQ(live.str(), "\r\x1b[2Kstep  120/1000  loss 3.2145  eta 2m56s");
  live.str("");
  width = 21;
  progress.Show(Metrics(), now);
  EXPECT_EQ(live.str(), "\r\x1b[2Kstep  120/1000");
  live.str("");
  width = 0;  // unknown
  progress.Show(Metrics(), now);
  EXPECT_EQ(live.str(), "\r\x1b[2K" + ProgressLine(Metrics(), 1000));
}

TEST(StepPaceTest, ForgetsTheWarmUpAndSmoothsTheRest) {
  StepPace pace;
  EXPECT_EQ(pace.SecondsPerStep(), 0);
  absl::Time now = absl::UnixEpoch();
  pace.Add(1, 30, now);
  EXPECT_EQ(pace.SecondsPerStep(), 30);
  for (int step = 2; step <= 40; ++step) {
    now += absl::Seconds(1);
    pace.Add(step, 1, now);
    EXPECT_DOUBLE_EQ(pace.SecondsPerStep(), 1);
  }
  now += absl::Seconds(3);
  pace.Add(41, 3, now);  // one slow step hardly matters ...
  EXPECT_LT(pace.SecondsPerStep(), 1.1);
  for (int step = 42; step <= 200; ++step) {
    now += absl::Seconds(3);
    pace.Add(step, 3, now);
  }
  EXPECT_NEAR(pace.SecondsPerStep(), 3, 0.05);  // ... but a new pace does
}

TEST(StepPaceTest, CountsWhatLiesBetweenTheSteps) {
  StepPace pace;
  absl::Time now = absl::UnixEpoch();
  pace.Add(10, 1, now);
  for (int step = 20; step <= 100; step += 10) {
    now += absl::Seconds(10 + 5);  // ten steps and a validation
    pace.Add(step, 1, now);
    pace.Add(step, 1, now);  // the row is shown again
  }
  EXPECT_DOUBLE_EQ(pace.SecondsPerStep(), 1.5);
}

}  // namespace
}  // namespace planc
