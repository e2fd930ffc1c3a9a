#include "schemas/live_bytes.h"

#include <gtest/gtest.h>

#include "schemas/plan.h"
#include "schemas/tiny_plan.h"
#include "schemas/workspace.h"

namespace planc {
namespace {

using Bytes = std::array<int64_t, kMemoryKindCount>;

// Bytes of the values of the tiny plan, counted by hand.
constexpr int64_t kTable = 8 * 8 * 4;  // also the output matrix
constexpr int64_t kTokens = 4 * 4;     // also the targets
constexpr int64_t kX = 4 * 8 * 4;      // also its gradient and the logits
constexpr int64_t kProduct = MatmulWorkspaceBudget(8, 8, 8);
// From the end of `clip`: the sums of squares and of the loss, which it reads, the coefficient and
// the norm.
constexpr int64_t kScalars = 8 + 8 + 4 + 4;

Instruction& FindStep(TinyPlan& tiny, const std::string& block, Opcode opcode) {
  for (Instruction& instruction : tiny.plan.blocks[tiny.BlockOf(block)].instructions) {
    if (instruction.opcode == opcode) return instruction;
  }
  ADD_FAILURE() << block;
  return tiny.plan.blocks[0].instructions[0];
}

TEST(LiveBytes, OneRank) {
  const TinyPlan tiny(1);
  // The first product of the second microbatch: the first one still has its tokens and its
  // gradient, the targets wait for the loss.
  const int64_t activations = 2 * kTokens + kX + (kTokens + kX + kX + kProduct);
  const Bytes expected = {2 * kTable, 2 * kTable, 4 * kTable, activations, 0, kScalars, 0};
  EXPECT_EQ(LiveBytes(tiny.plan, tiny.plan.classes[0]), expected);
}

TEST(LiveBytes, TwoStages) {
  const TinyPlan tiny(2);
  const int64_t scratch = tiny.plan.buffers[tiny.BufferOf("scratch")].bytes;
  // Of the first stage: both microbatches' tokens and one x or its gradient, between the transfers.
  // All-reduces take scratch beside both sums.
  const Bytes first = {kTable, kTable, 2 * kTable, 2 * kTokens + kX, 0, 16 + scratch, 0};
  EXPECT_EQ(LiveBytes(tiny.plan, tiny.plan.classes[0]), first);
  const Bytes second = {kTable, kTable,       2 * kTable, kTokens + 2 * kX + kProduct,
                        0,      16 + scratch, 0};
  EXPECT_EQ(LiveBytes(tiny.plan, tiny.plan.classes[1]), second);
}

TEST(LiveBytes, AValueThatNobodyReadsIsDead) {
  TinyPlan tiny(1);
  // Tokens stay for the backward pass of the table only.
  FindStep(tiny, "embed_backward", Opcode::kEmbeddingBackward)
      .operands.erase(
          FindStep(tiny, "embed_backward", Opcode::kEmbeddingBackward).operands.begin());
  EXPECT_EQ(LiveBytes(tiny.plan, tiny.plan.classes[0])[static_cast<int>(MemoryKind::kActivations)],
            kX + (kTokens + kX + kX + kProduct));
}

TEST(LiveBytes, RunsOfARepeatAreAllCounted) {
  TinyPlan tiny(1);
  const Bytes once = LiveBytes(tiny.plan, tiny.plan.classes[0]);
  // A step that runs its microbatches again and again needs no more than one that runs them once.
  Repeat& repeat = tiny.plan.classes[0].programs[static_cast<int>(ProgramKind::kStep)].steps[0];
  repeat.count = int64_t{1} << 40;
  EXPECT_EQ(LiveBytes(tiny.plan, tiny.plan.classes[0]), once);
}

TEST(LiveBytes, SnapshotsAreWhole) {
  TinyPlan tiny(1);
  Buffer snapshot = tiny.plan.buffers[tiny.BufferOf("m.table")];
  snapshot.bytes *= 3;
  tiny.plan.pools.push_back({"snapshot", MemoryKind::kHostPinned, snapshot.bytes});
  snapshot.pool = tiny.PoolOf("snapshot");
  tiny.plan.units[0].snapshot = static_cast<int>(tiny.plan.buffers.size());
  tiny.plan.buffers.push_back(snapshot);
  tiny.plan.classes[0].pool_slots.push_back(5);
  EXPECT_EQ(LiveBytes(tiny.plan, tiny.plan.classes[0])[static_cast<int>(MemoryKind::kHostPinned)],
            5 * 3 * kTable);
}

}  // namespace
}  // namespace planc
