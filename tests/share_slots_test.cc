// Gradients in slots of saved activations: which gradients take one, what that saves, and that the
// verifier refuses a slot that is still needed.
#include <set>

#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

constexpr int kLayers = 4;  // of the base job
constexpr char kShared[] = "saved_then_gradients";

Plan Compile(const std::string& family, const std::vector<std::string>& more) {
  return CompileMeshCase({"share", family, {"batch.micro=8"}}, more);
}

int PoolOf(const Plan& plan, const std::string& name) {
  for (size_t p = 0; p < plan.pools.size(); ++p) {
    if (plan.pools[p].name == name) return static_cast<int>(p);
  }
  return -1;
}

// The calls of the block in the step of the first stage.
std::vector<Call*> StepCalls(Plan& plan, const std::string& block) {
  std::vector<Call*> calls;
  for (Repeat& repeat : plan.classes[0].programs[static_cast<int>(ProgramKind::kStep)].steps) {
    for (Call& call : repeat.calls) {
      if (plan.blocks[call.block].name == block) calls.push_back(&call);
    }
  }
  return calls;
}

// The call's slots of the shared pool.
std::vector<int32_t*> SharedSlots(const Plan& plan, Call& call) {
  std::vector<int32_t*> slots;
  const std::vector<int>& pools = plan.blocks[call.block].bindings;
  for (size_t b = 0; b < pools.size(); ++b) {
    if (plan.pools[pools[b]].name == kShared) slots.push_back(&call.slots[b]);
  }
  return slots;
}

// The slot that the unit's AdamW reads its gradient from, for each call.
std::vector<int32_t> GradientSlots(Plan& plan, const std::string& unit) {
  std::vector<int32_t> slots;
  for (Call* call : StepCalls(plan, "adamw." + unit)) {
    for (int32_t* slot : SharedSlots(plan, *call)) slots.push_back(*slot);
  }
  return slots;
}

TEST(ShareSlotsTest, EveryLayerAndTheTableHaveASlot) {
  Plan plan = Compile("llama", {});
  std::vector<int32_t> slots = GradientSlots(plan, "layer");
  EXPECT_EQ(slots.size(), size_t{kLayers});
  EXPECT_EQ(GradientSlots(plan, "table").size(), 1u);
  slots.push_back(GradientSlots(plan, "table").at(0));
  EXPECT_EQ(std::set<int32_t>(slots.begin(), slots.end()).size(), size_t{kLayers + 1});
  EXPECT_EQ(plan.classes[0].pool_slots[PoolOf(plan, kShared)], kLayers + 1);
  EXPECT_EQ(PoolOf(plan, "gradients.layer"), -1);
  EXPECT_EQ(PoolOf(plan, "gradients.table"), -1);
  EXPECT_GE(PoolOf(plan, "gradients.output"), 0);
}

TEST(ShareSlotsTest, ATiedTableKeepsItsGradient) {
  // The head writes it while all layers have saved activations.
  Plan plan = Compile("llama", {"model.tie_embeddings=true"});
  EXPECT_EQ(GradientSlots(plan, "layer").size(), size_t{kLayers});
  EXPECT_TRUE(GradientSlots(plan, "table").empty());
  EXPECT_GE(PoolOf(plan, "gradients.table"), 0);
}

TEST(ShareSlotsTest, ATableLargerThanWhatALayerSavesKeepsItsGradient) {
  Plan plan = Compile("llama_wide", {});
  EXPECT_EQ(GradientSlots(plan, "layer").size(), size_t{kLayers});
  EXPECT_TRUE(GradientSlots(plan, "table").empty());
  EXPECT_GE(PoolOf(plan, "gradients.table"), 0);
}

TEST(ShareSlotsTest, SlotsGrowForATableThatIsWorthIt) {
  // Queries, keys and values of a layer hold its gradients; those of a table with 500 rows need the
  // place of gates and ups.
  constexpr int64_t kTokenBytes = 8 * 16 * 4;
  Plan small = Compile("llama", {});
  EXPECT_EQ(small.pools[PoolOf(small, kShared)].stride, kTokenBytes * 3 * 32);
  Plan large = Compile("llama", {"model.vocab=500"});
  EXPECT_EQ(large.pools[PoolOf(large, kShared)].stride, kTokenBytes * 2 * 64);
  EXPECT_EQ(GradientSlots(large, "table").size(), 1u);
}

TEST(ShareSlotsTest, SeveralMicrobatchesKeepTheirGradients) {
  Plan plan = Compile("llama", {"batch.micro=4"});
  EXPECT_EQ(PoolOf(plan, kShared), -1);
  EXPECT_GE(PoolOf(plan, "gradients.layer"), 0);
  EXPECT_GE(PoolOf(plan, "gradients.table"), 0);
}

TEST(ShareSlotsTest, TheTableInTheSlotOfALayersGradientIsRefused) {
  Plan plan = Compile("llama", {});
  ASSERT_TRUE(VerifyPlan(plan).violations.empty());
  const int32_t taken = GradientSlots(plan, "layer").at(1);
  for (const char* block : {"zero.table", "embed_backward", "norm.table", "adamw.table"}) {
    for (Call* call : StepCalls(plan, block)) {
      for (int32_t* slot : SharedSlots(plan, *call)) *slot = taken;
    }
  }
  EXPECT_FALSE(VerifyPlan(plan).violations.empty());
}

}  // namespace
}  // namespace planc
