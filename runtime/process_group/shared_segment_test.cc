#include "runtime/process_group/shared_segment.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = 4096;

std::unique_ptr<SharedSegment> CreateOrDie() {
  absl::StatusOr<std::unique_ptr<SharedSegment>> segment = SharedSegment::Create(kBytes, 0);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

TEST(SharedSegmentTest, MembersSeeTheSameMemoryAndEachOther) {
  const auto first = CreateOrDie();
  EXPECT_FALSE(first->IsPresent(1));
  auto second = SharedSegment::Attach(first->location(), kBytes, 1);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(first->memory(), (*second)->memory());
  EXPECT_EQ(first->memory()[kBytes - 1], 0);
  first->memory()[kBytes - 1] = 42;
  EXPECT_EQ((*second)->memory()[kBytes - 1], 42);

  EXPECT_TRUE(first->IsPresent(1));
  EXPECT_TRUE((*second)->IsPresent(0));
  (*second)->Leave();
  EXPECT_FALSE(first->IsPresent(1));
  EXPECT_TRUE((*second)->IsPresent(0));
}

TEST(SharedSegmentTest, DestructionMakesAbsent) {
  const auto first = CreateOrDie();
  auto second = first->AttachHere(1);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->memory(), (*second)->memory());
  EXPECT_TRUE(first->IsPresent(1));
  second->reset();
  EXPECT_FALSE(first->IsPresent(1));
}

TEST(SharedSegmentTest, AMemberComesOnce) {
  const auto first = CreateOrDie();
  const absl::Status again = first->AttachHere(0).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.message()), HasSubstr("as member 0"));
}

TEST(SharedSegmentTest, AKilledProcessIsAbsent) {
  const auto first = CreateOrDie();
  const pid_t child = fork();
  if (child == 0) {
    const auto second = SharedSegment::Attach(first->location(), kBytes, 1);
    if (!second.ok()) _exit(1);
    for (;;) pause();
  }
  while (!first->IsPresent(1)) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "the child could not attach";
    absl::SleepFor(absl::Milliseconds(1));
  }
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(first->IsPresent(1));
}

TEST(SharedSegmentTest, OtherMemoryIsRefused) {
  const auto segment = CreateOrDie();
  const auto error = [](const std::string& location, int64_t bytes) {
    const absl::Status status = SharedSegment::Attach(location, bytes, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    return std::string(status.message());
  };
  std::vector<std::string> parts = absl::StrSplit(segment->location(), ' ');
  EXPECT_THAT(error(segment->location(), 2 * kBytes), HasSubstr("another size"));
  EXPECT_THAT(error(absl::StrCat(segment->location(), "0"), kBytes), HasSubstr("to others"));
  parts[1] = "0";
  EXPECT_THAT(error(absl::StrJoin(parts, " "), kBytes), HasSubstr("something else"));
  parts[1] = "9999999";
  EXPECT_THAT(error(absl::StrJoin(parts, " "), kBytes), HasSubstr("No such file"));
  EXPECT_THAT(error("", kBytes), HasSubstr("malformed"));
  EXPECT_FALSE(segment->IsPresent(1));
}

// The location comes from another rank.
TEST(SharedSegmentTest, ALocationIsNoPath) {
  const std::string folder = ::testing::TempDir() + "/planc-group";
  std::filesystem::create_directories(folder + "/fd");
  std::ofstream(folder + "/fd/0") << std::string(64 + kBytes, '\0');
  const std::string up = absl::StrCat("../..", folder);
  for (const std::string& location :
       {up + " 0 0", std::string("self/task/../../self 0 0"), std::string("self 0 0"),
        std::string("1 ../fd/0 0"), std::string("-1 0 0"), std::string("1 -1 0"),
        std::string("99999999999 0 0"), std::string("1 0"), std::string("1 0 0 0")}) {
    const absl::Status status = SharedSegment::Attach(location, kBytes, 1).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("malformed location")) << location;
  }
}

TEST(SharedSegmentTest, MemoryThatCanBeTakenAwayIsRefused) {
  const int memory = memfd_create("planc-group", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(memory, 64 + kBytes), 0);
  const absl::Status status =
      SharedSegment::Attach(absl::StrCat(getpid(), " ", memory, " 0"), kBytes, 1).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not sealed"));
  close(memory);
  const int other = memfd_create("not-planc-group", MFD_CLOEXEC);
  const absl::Status renamed =
      SharedSegment::Attach(absl::StrCat(getpid(), " ", other, " 0"), kBytes, 1).status();
  EXPECT_THAT(std::string(renamed.message()), HasSubstr("is something else"));
  close(other);
}

}  // namespace
}  // namespace planc
