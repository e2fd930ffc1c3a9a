#include "runtime/data/data_position.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/data/permutation.h"

namespace planc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSeed = 1234;

std::vector<int64_t> Windows(const DataPosition& position, int64_t first, int64_t count) {
  std::vector<int64_t> windows;
  for (int64_t i = first; i < first + count; ++i) windows.push_back(WindowOfSample(position, i));
  return windows;
}

std::set<int64_t> AsSet(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

DataPosition GoOn(const DataPosition& saved, int64_t sequence, const DataNow& now,
                  std::vector<std::string>* notices = nullptr) {
  std::vector<std::string> ignored;
  const absl::StatusOr<DataPosition> next =
      GoOnFrom(saved, sequence, now, notices == nullptr ? &ignored : notices);
  EXPECT_TRUE(next.ok()) << next.status();
  return next.ok() ? *next : saved;
}

TEST(DataPositionTest, WithoutChangesTheOrderIsThatOfTheEpochs) {
  const DataPosition begin = FirstPosition(35, kSeed);
  for (int64_t sample = 0; sample < 200; ++sample) {
    EXPECT_EQ(WindowOfSample(begin, sample),
              PermutedIndex(sample % 35, 35, kSeed, static_cast<uint64_t>(sample / 35)));
  }
  DataPosition at = begin;
  std::vector<std::string> notices;
  for (const int64_t more : {8, 3, 24, 35, 100}) {  // across borders of epochs, and onto one
    at = GoOn(Advanced(at, more, 16), 16, {35, 16, kSeed}, &notices);
    EXPECT_EQ(at.tokens, at.samples * 16);
    EXPECT_EQ(Windows(at, at.samples, 100), Windows(begin, at.samples, 100));
  }
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_DOUBLE_EQ(EpochsBefore(begin, 70), 2);
  EXPECT_DOUBLE_EQ(EpochsBefore(begin, 42), 1.2);
}

// Appended data: what is left of the epoch, then all of the longer data.
TEST(DataPositionTest, AppendedDataCountFromTheNextEpochOn) {
  const DataPosition begin = FirstPosition(19, kSeed);
  std::vector<std::string> notices;
  DataPosition at = GoOn(Advanced(begin, 16, 8), 8, {35, 8, kSeed}, &notices);
  EXPECT_THAT(notices, ElementsAre("data.train: epoch 0 goes on after 16 samples, 128 tokens, with "
                                   "the 3 samples of 8 tokens that it has left; epoch 1 has 35 "
                                   "windows"));
  EXPECT_EQ(Windows(at, 16, 3), Windows(begin, 16, 3));
  EXPECT_EQ(AsSet(Windows(at, 19, 35)).size(), 35u);
  EXPECT_DOUBLE_EQ(EpochsBefore(at, 19), 1);
  EXPECT_DOUBLE_EQ(EpochsBefore(at, 54), 2);
  // A stop before and after that epoch ends changes nothing, and is not told again.
  notices.clear();
  const std::vector<int64_t> expected = Windows(at, 17, 60);
  at = GoOn(Advanced(at, 1, 8), 8, {35, 8, kSeed}, &notices);
  EXPECT_EQ(Windows(at, 17, 60), expected);
  at = GoOn(Advanced(at, 10, 8), 8, {35, 8, kSeed}, &notices);
  EXPECT_THAT(at.deals, testing::SizeIs(1));
  EXPECT_EQ(Windows(at, 27, 50), std::vector<int64_t>(expected.begin() + 10, expected.end()));
  EXPECT_THAT(notices, IsEmpty());
  // More data before the epoch with the last ones has begun.
  at = GoOn(Advanced(begin, 16, 8), 8, {35, 8, kSeed});
  at = GoOn(Advanced(at, 1, 8), 8, {50, 8, kSeed}, &notices);
  EXPECT_EQ(Windows(at, 17, 2), Windows(begin, 17, 2));
  EXPECT_EQ(AsSet(Windows(at, 19, 50)).size(), 50u);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("epoch 1 has 50 windows")));
}

// A part of the sequence length: the windows that are left, each in parts, and nothing twice.
TEST(DataPositionTest, ShorterSequencesCutTheWindowsThatAreLeft) {
  const DataPosition begin = FirstPosition(10, kSeed);
  std::vector<std::string> notices;
  // 10 windows of 16 tokens and 15 more tokens: 43 windows of 4.
  DataPosition at = GoOn(Advanced(begin, 7, 16), 16, {43, 4, kSeed}, &notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("epoch 0 goes on after 7 samples, 112 tokens, with "
                                             "the 12 samples of 4 tokens that it has left; epoch 1 "
                                             "has 43 windows")));
  std::set<int64_t> tokens;  // first ones of 4
  for (const int64_t window : Windows(begin, 0, 7)) {
    for (int64_t part = 0; part < 4; ++part) tokens.insert(window * 4 + part);
  }
  for (const int64_t window : Windows(at, 7, 12)) {
    EXPECT_TRUE(tokens.insert(window).second) << window << " is read twice";
  }
  EXPECT_EQ(tokens.size(), 40u);
  EXPECT_EQ(*tokens.rbegin(), 39);
  EXPECT_DOUBLE_EQ(EpochsBefore(at, 7), 0.7);
  EXPECT_DOUBLE_EQ(EpochsBefore(at, 19), 1);
  EXPECT_EQ(AsSet(Windows(at, 19, 43)).size(), 43u);
  // Once more in the same epoch, and a stop in the middle of a window.
  const std::vector<int64_t> expected = Windows(at, 9, 20);
  EXPECT_EQ(Windows(GoOn(Advanced(at, 2, 4), 4, {43, 4, kSeed}), 9, 20), expected);
  const DataPosition twice = GoOn(Advanced(at, 2, 4), 4, {87, 2, kSeed});
  const std::vector<int64_t> halves = Windows(twice, 9, 20);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(halves[i], expected[i / 2] * 2 + static_cast<int64_t>(i % 2));
  }
}

TEST(DataPositionTest, LongerSequencesBeginTheNextEpochUnlessOneBeginsAnyway) {
  const DataPosition begin = FirstPosition(40, kSeed);
  std::vector<std::string> notices;
  DataPosition at = GoOn(Advanced(begin, 10, 4), 4, {10, 16, kSeed}, &notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("30 windows (120 tokens) of epoch 0 are not read")));
  EXPECT_DOUBLE_EQ(EpochsBefore(at, 10), 1);
  EXPECT_EQ(AsSet(Windows(at, 10, 10)).size(), 10u);
  notices.clear();
  at = GoOn(Advanced(begin, 80, 4), 4, {10, 16, kSeed}, &notices);
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_DOUBLE_EQ(EpochsBefore(at, 80), 2);
  EXPECT_EQ(at.tokens, 320);
}

TEST(DataPositionTest, AnotherSeedOrdersTheNextEpoch) {
  const DataPosition begin = FirstPosition(20, kSeed);
  std::vector<std::string> notices;
  const DataPosition at = GoOn(Advanced(begin, 15, 4), 4, {20, 4, 99}, &notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("in the order of the new run.seed")));
  EXPECT_EQ(Windows(at, 15, 5), Windows(begin, 15, 5));
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(WindowOfSample(at, 20 + i), PermutedIndex(i, 20, 99, 1));
}

TEST(DataPositionTest, OtherDataAreReadFromTheirBeginning) {
  std::vector<std::string> notices;
  const DataPosition at =
      GoOn(Advanced(FirstPosition(20, kSeed), 33, 4), 4,
           {.windows = 7, .sequence = 4, .seed = kSeed, .replaced = true}, &notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("after 33 samples, 132 tokens, other data than before "
                                             "are read from the beginning: epoch 0 of 7 windows")));
  EXPECT_EQ(at.samples, 33);
  EXPECT_EQ(at.tokens, 132);
  EXPECT_EQ(Windows(at, 33, 7), Windows(FirstPosition(7, kSeed), 0, 7));
}

TEST(DataPositionTest, NumbersThatMakeNoSenseAreRefused) {
  const DataPosition sound = {20, 80, {{16, 1, 2, 10, 2, kSeed}, {24, 2, 0, 30, 1, kSeed}}};
  EXPECT_TRUE(CheckPosition(sound).ok());
  const auto refused = [&](void (*change)(DataPosition*)) {
    DataPosition position = sound;
    change(&position);
    return CheckPosition(position).code() == absl::StatusCode::kDataLoss;
  };
  EXPECT_TRUE(refused([](DataPosition* p) { p->samples = -1; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->samples = 15; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->samples = INT64_MAX; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->tokens = -1; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals.clear(); }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[0].windows = 0; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[0].cut = 0; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[0].cut = p->deals[0].windows = 1L << 40; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[0].place = 20; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[0].place = -1; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[0].epoch = -1; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals[1].first = 16; }));
  EXPECT_TRUE(refused([](DataPosition* p) { p->deals.resize(2000, p->deals[1]); }));
  std::vector<std::string> notices;
  for (const int64_t sequence : {int64_t{0}, int64_t{-1}, INT64_MAX, int64_t{1} << 47}) {
    EXPECT_EQ(GoOnFrom(sound, sequence, {30, 4, kSeed}, &notices).status().code(),
              absl::StatusCode::kDataLoss);
  }
  // More windows than the data have.
  EXPECT_EQ(GoOnFrom(sound, 4, {15, 4, kSeed}, &notices).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace planc
