#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "schemas/plan.h"

namespace planc {
namespace {

std::vector<Call> Expand(const Program& program) {
  std::vector<Call> calls;
  ForEachCall(program, [&](const Call& call) { calls.push_back(call); });
  return calls;
}

size_t FoldedSize(const Program& program) {
  size_t size = 0;
  for (const Repeat& repeat : program.steps) size += repeat.calls.size();
  return size;
}

// Forward and backward of each microbatch through `layers` layers.
std::vector<Call> Accumulation(int layers, int microbatches) {
  std::vector<Call> calls = {{0, -1, -1, {}}};
  for (int m = 0; m < microbatches; ++m) {
    for (int l = 0; l < layers; ++l) calls.push_back({1, l, m, {l, 0}});
    for (int l = layers - 1; l >= 0; --l) calls.push_back({2, l, m, {l, 0}});
  }
  calls.push_back({3, -1, -1, {}});
  return calls;
}

// 1F1B (arXiv 2006.09503) of the first of `stages` stages: activation slots cycle.
std::vector<Call> OneForwardOneBackward(int stages, int microbatches) {
  std::vector<Call> calls;
  const auto forward = [&](int m) { calls.push_back({1, -1, m, {m % stages}}); };
  const auto backward = [&](int m) { calls.push_back({2, -1, m, {m % stages}}); };
  const int warmup = std::min(stages - 1, microbatches);
  for (int m = 0; m < warmup; ++m) forward(m);
  for (int m = warmup; m < microbatches; ++m) {
    forward(m);
    backward(m - warmup);
  }
  for (int m = microbatches - warmup; m < microbatches; ++m) backward(m);
  return calls;
}

TEST(FoldCalls, ExpandsToTheSameCalls) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Call> calls(random() % 60);
    for (Call& call : calls) {
      call.block = static_cast<int>(random() % 2);
      call.layer = static_cast<int>(random() % 2) - 1;
      call.microbatch = static_cast<int>(random() % 4) - 1;
      call.slots.assign(random() % 2, static_cast<int32_t>(random() % 2));
    }
    // Repeat a piece, so that there is something to fold.
    if (!calls.empty()) {
      const std::vector<Call> piece(calls.begin(), calls.begin() + random() % calls.size());
      const int step = static_cast<int>(random() % 3);
      for (int i = 1; i <= 3; ++i) {
        for (Call call : piece) {
          if (call.microbatch >= 0) call.microbatch += i * step;
          calls.push_back(call);
        }
      }
    }
    ASSERT_EQ(Expand(FoldCalls(calls)), calls) << "round " << round;
  }
}

TEST(FoldCalls, EmptyListIsAnEmptyProgram) { EXPECT_TRUE(FoldCalls({}).steps.empty()); }

TEST(FoldCalls, AccumulationDoesNotGrowWithMicrobatches) {
  const Program program = FoldCalls(Accumulation(12, 1000));
  EXPECT_EQ(Expand(program), Accumulation(12, 1000));
  EXPECT_EQ(FoldedSize(program), 2u + 24u);
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_EQ(program.steps[1].count, 1000);
  EXPECT_EQ(program.steps[1].microbatch_step, 1);
}

TEST(FoldCalls, OneForwardOneBackwardDoesNotGrowWithMicrobatches) {
  const size_t size = FoldedSize(FoldCalls(OneForwardOneBackward(8, 64)));
  EXPECT_EQ(FoldedSize(FoldCalls(OneForwardOneBackward(8, 1024))), size);
  EXPECT_EQ(Expand(FoldCalls(OneForwardOneBackward(8, 1024))), OneForwardOneBackward(8, 1024));
  EXPECT_LE(size, 48u);
}

TEST(FoldCalls, MicrobatchesMustAdvanceTogether) {
  std::vector<Call> calls;
  for (int m = 0; m < 8; ++m) {
    calls.push_back({0, -1, m, {}});
    calls.push_back({1, -1, 7 - m, {}});
  }
  EXPECT_EQ(Expand(FoldCalls(calls)), calls);
  EXPECT_EQ(FoldedSize(FoldCalls(calls)), calls.size());
}

}  // namespace
}  // namespace planc
