#include "runtime/metrics/metrics_writer.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/fault.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

StepMetrics Row(int64_t step) {
  StepMetrics row;
  row.step = step;
  row.tokens = step * 1024;
  row.loss = 5.0 / static_cast<double>(step);
  row.grad_norm = 0.1;
  row.lr = 3e-4;
  row.step_seconds = 0.25;
  row.tokens_per_second = 4096;
  row.memory_bytes = 1 << 20;
  row.resident_bytes = int64_t{1} << 33;
  return row;
}

class MetricsWriterTest : public testing::Test {
 protected:
  MetricsWriterTest() {
    directory_ =
        testing::TempDir() + "run_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  void WriteSteps(int64_t resumed_step, int64_t first, int64_t last, double wall_time) {
    auto writer = MetricsWriter::Open(directory_, resumed_step, wall_time);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (int64_t step = first; step <= last; ++step) {
      ASSERT_TRUE((*writer)->Write(Row(step), wall_time).ok());
    }
  }
  std::vector<int64_t> Steps(const std::string& name = kMetricsName) {
    const auto rows = ReadMetrics(directory_ + "/" + name);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<int64_t> steps;
    for (const StepMetrics& row : *rows) steps.push_back(row.step);
    return steps;
  }
  int EventFiles() {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      count +=
          static_cast<int>(entry.path().filename().string().rfind("events.out.tfevents", 0) == 0);
    }
    return count;
  }

  std::string directory_;
};

TEST_F(MetricsWriterTest, JsonOfARow) {
  StepMetrics row = Row(5);
  EXPECT_EQ(MetricsJson(row), R"({"step":5,"tokens":5120,"loss":1.0,"grad_norm":0.1,"lr":0.0003,)"
                              R"("step_seconds":0.25,"tokens_per_second":4096.0,"mfu":null,)"
                              R"("memory_bytes":1048576,"resident_bytes":8589934592})");
  row.validation_loss = 2.5;
  row.run = "0123456789abcdef";
  row.mfu = 0.5;
  row.loss = std::numeric_limits<double>::infinity();
  const auto parsed = ParseMetricsJson(MetricsJson(row));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->validation_loss, 2.5);
  EXPECT_EQ(parsed->mfu, 0.5);
  EXPECT_EQ(parsed->run, "0123456789abcdef");
  EXPECT_TRUE(std::isnan(parsed->loss));
  EXPECT_EQ(MetricsJson(*parsed), MetricsJson(row));
}

TEST_F(MetricsWriterTest, RowsAreThereAtOnce) {
  auto writer = MetricsWriter::Open(directory_, 0, 1);
  ASSERT_TRUE(writer.ok());
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE((*writer)->Write(Row(step), 1).ok());
    EXPECT_EQ(Steps().size(), static_cast<size_t>(step));
  }
}

TEST_F(MetricsWriterTest, ResumingMovesRowsAsideThatWillBeWrittenAgain) {
  fs::create_directories(directory_);
  std::ofstream(directory_ + "/events.out.tfevents.5.of_another_program") << "x";
  WriteSteps(0, 1, 8, 100);
  WriteSteps(5, 6, 7, 200);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Steps(kSupersededMetricsName), (std::vector<int64_t>{6, 7, 8}));
  EXPECT_EQ(EventFiles(), 3);
  WriteSteps(0, 1, 2, 200);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(Steps(kSupersededMetricsName), (std::vector<int64_t>{6, 7, 8, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(EventFiles(), 4) << "none is removed, also of the same second";
}

TEST_F(MetricsWriterTest, AnUnfinishedLastLineIsPassedOver) {
  WriteSteps(0, 1, 3, 100);
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << R"({"step":4,"tok)";
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3}));
  WriteSteps(3, 4, 4, 200);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3, 4}));
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << "{}\n";
  const auto rows = ReadMetrics(directory_ + "/metrics.jsonl");
  EXPECT_THAT(std::string(rows.status().message()),
              testing::HasSubstr("metrics.jsonl:5: not a row of metrics"));
}

TEST_F(MetricsWriterTest, WhatCheckpointsTook) {
  StepMetrics row = Row(5);
  row.checkpoint_stall_seconds = 0.25;
  row.checkpoint_write_seconds = 2;
  row.checkpoint_bytes = int64_t{1} << 40;
  row.checkpoint_error = "rank 1: \xff: No space left on device";
  const std::string text = MetricsJson(row);
  EXPECT_THAT(
      text, testing::HasSubstr(R"("checkpoint_stall_seconds":0.25,"checkpoint_write_seconds":2.0,)"
                               R"("checkpoint_bytes":1099511627776,"checkpoint_error":"rank 1: )"));
  const auto parsed = ParseMetricsJson(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->checkpoint_bytes, row.checkpoint_bytes);
  EXPECT_EQ(MetricsJson(*parsed), text);
}

TEST_F(MetricsWriterTest, HowMuchOfTheDataWasUsed) {
  StepMetrics row = Row(5);
  row.validation_loss = 1.5;
  row.epoch = 1.25;
  row.validation_windows = 3;
  const std::string text = MetricsJson(row);
  EXPECT_THAT(text, testing::HasSubstr(R"("epoch":1.25,"validation_windows":3)"));
  const auto parsed = ParseMetricsJson(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->epoch, row.epoch);
  EXPECT_EQ(parsed->validation_windows, row.validation_windows);
}

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_F(MetricsWriterTest, RowsThatStayAreNotWrittenAnew) {
  WriteSteps(0, 1, 2, 100);
  const std::string path = directory_ + "/metrics.jsonl";
  // A row of a later version of planc.
  std::string text = Contents(path);
  text.insert(text.find('}'), ",\"new\":1.50");
  std::ofstream(path) << text;
  WriteSteps(2, 3, 3, 200);
  EXPECT_EQ(Contents(path), absl::StrCat(text, MetricsJson(Row(3)), "\n"));
}

TEST_F(MetricsWriterTest, DamageBehindTheRowsThatStayDoesNotMatter) {
  const std::string path = directory_ + "/metrics.jsonl";
  WriteSteps(0, 1, 3, 100);
  std::ofstream(path, std::ios::app) << std::string(100, '\0') << "\n"
                                     << MetricsJson(Row(7)) << "\n";
  WriteSteps(3, 4, 4, 200);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3, 4}));
  std::ofstream(path, std::ios::app) << "{}\n" << MetricsJson(Row(5)) << "\n";
  const auto writer = MetricsWriter::Open(directory_, 5, 300);
  EXPECT_THAT(std::string(writer.status().message()),
              testing::HasSubstr("metrics.jsonl:5: not a row of metrics"));
}

TEST_F(MetricsWriterTest, TheLastRowThatStaysCanBeCompleted) {
  WriteSteps(0, 1, 5, 100);
  auto writer = MetricsWriter::Open(directory_, 3, 200);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->kept().has_value());
  StepMetrics row = *(*writer)->kept();
  EXPECT_EQ(row.step, 3);
  row.validation_loss = 1.5;
  ASSERT_TRUE((*writer)->ReplaceKept(row, 200).ok());
  ASSERT_TRUE((*writer)->Write(Row(4), 200).ok());
  ASSERT_TRUE((*writer)->Sync().ok());
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ((*ReadMetrics(directory_ + "/metrics.jsonl"))[2].validation_loss, 1.5);
}

// The largest size of a file stands in for a full disk: it can be lifted again.
TEST_F(MetricsWriterTest, RowsThatADiskHasNoRoomForAreKept) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto writer = MetricsWriter::Open(directory_, 0, 1);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(Row(1), 1).ok());
  rlimit full = before;
  // In the middle of the second row.
  full.rlim_cur = fs::file_size(directory_ + "/metrics.jsonl") + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  for (int64_t step = 2; step <= 50; ++step) ASSERT_TRUE((*writer)->Write(Row(step), 1).ok());
  EXPECT_TRUE((*writer)->Sync().ok()) << "no reason against a checkpoint";
  const absl::Status kept = (*writer)->Flush();
  EXPECT_TRUE(absl::IsResourceExhausted(kept)) << kept;
  EXPECT_EQ(FaultOf(kept), Fault::kEnvironment);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE((*writer)->Write(Row(51), 1).ok());
  EXPECT_TRUE((*writer)->Flush().ok());
  const std::vector<int64_t> steps = Steps();
  ASSERT_EQ(steps.size(), 51u);
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], static_cast<int64_t>(i) + 1);
}

TEST_F(MetricsWriterTest, NotMoreIsKeptThanThereIsMemoryFor) {
  auto file = AppendFile::Open("/dev/full", /*truncate=*/false);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->AppendOrKeep("1234", /*most_kept=*/10).ok());
  EXPECT_TRUE((*file)->AppendOrKeep("567890", /*most_kept=*/10).ok());
  const absl::Status refused = (*file)->AppendOrKeep("1", /*most_kept=*/10);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(), "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace planc
