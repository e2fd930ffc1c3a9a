#include "compiler/graph/layout_rules.h"

#include "compiler/graph/block_builder.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

const AxisLayout kR = AxisLayout::Replicated();
const AxisLayout kS0 = AxisLayout::Shard(0);
const AxisLayout kS1 = AxisLayout::Shard(1);
const AxisLayout kP = AxisLayout::PartialSum();

// A graph on two tensor-parallel ranks; layouts are given for that axis.
class LayoutRules : public testing::Test {
 protected:
  LayoutRules() {
    graph_.mesh.size = {1, 1, 1, 1, 2};
    graph_.groups = {{"tp", AxisBit(Axis::kTp)}};
  }

  ValueId Value(const std::string& name, std::vector<int64_t> shape, AxisLayout tp) {
    GraphValue v;
    v.name = name;
    v.shape = std::move(shape);
    v.layout[Axis::kTp] = tp;
    return graph_.AddValue(v);
  }

  // Layout of x W^T or the error.
  absl::StatusOr<AxisLayout> Product(AxisLayout x, AxisLayout w) {
    BlockBuilder b(&graph_, "block" + std::to_string(graph_.blocks.size()), Label::kForward);
    const ValueId y =
        b.Matmul("y", Value("x", {8, 4}, x), Value("w", {6, 4}, w), false, true, DType::kF32);
    if (!b.status().ok()) return b.status();
    return graph_.values[y].layout[Axis::kTp];
  }

  StepGraph graph_;
};

TEST_F(LayoutRules, ColumnParallelProductIsSharded) { EXPECT_EQ(*Product(kR, kS0), kS1); }
TEST_F(LayoutRules, RowParallelProductIsPartial) { EXPECT_EQ(*Product(kS1, kS1), kP); }
TEST_F(LayoutRules, ShardedRowsStaySharded) { EXPECT_EQ(*Product(kS0, kR), kS0); }

TEST_F(LayoutRules, ProductsThatWouldNeedACollectiveAreRefused) {
  EXPECT_FALSE(Product(kS0, kS0).ok());
  EXPECT_FALSE(Product(kS1, kR).ok());
  EXPECT_FALSE(Product(kP, kR).ok());
  EXPECT_FALSE(Product(kR, kS1).ok());
}

TEST_F(LayoutRules, AForgottenReductionIsAnError) {
  BlockBuilder b(&graph_, "forgotten", Label::kForward);
  const ValueId y =
      b.Matmul("y", Value("x", {8, 4}, kS1), Value("w", {4, 4}, kS1), false, true, DType::kF32);
  const ValueId out = b.Local("out", DType::kF32, {8, 4});
  b.Emit(Opcode::kGeluForward, {y, out}, {8, 4});
  EXPECT_FALSE(b.status().ok());
  EXPECT_NE(std::string(b.status().message()).find("x may not be P"), std::string::npos)
      << b.status();
}

TEST_F(LayoutRules, ADoubledReductionIsAnError) {
  BlockBuilder b(&graph_, "doubled", Label::kForward);
  const ValueId y =
      b.Matmul("y", Value("x", {8, 4}, kS1), Value("w", {4, 4}, kS1), false, true, DType::kF32);
  const ValueId whole = b.AllReduce(y, "tp");
  EXPECT_TRUE(b.status().ok());
  EXPECT_EQ(graph_.values[whole].layout[Axis::kTp], kR);
  b.AllReduce(whole, "tp");
  EXPECT_FALSE(b.status().ok());
}

TEST_F(LayoutRules, GradientOfAReplicatedWeightIsPartialOverShardedRows) {
  BlockBuilder b(&graph_, "norm", Label::kBackward);
  const ValueId dy = Value("dy", {8, 4}, kS0);
  const ValueId dw = b.Local("dw", DType::kF32, {4});
  b.Emit(Opcode::kRmsNormBackward,
         {dy, Value("x", {8, 4}, kS0), Value("w", {4}, kR), Value("rstd", {8}, kS0),
          b.Local("dx", DType::kF32, {8, 4}), dw, b.Workspace(64)},
         {4, 4});
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_EQ(graph_.values[dw].layout[Axis::kTp], kP);
}

TEST_F(LayoutRules, CheckLayoutsFindsAWrongDeclaration) {
  BlockBuilder b(&graph_, "declared", Label::kForward);
  const ValueId y =
      b.Matmul("y", Value("x", {8, 4}, kR), Value("w", {6, 4}, kS0), false, true, DType::kF32);
  EXPECT_TRUE(CheckLayouts(graph_).ok());
  graph_.values[y].layout[Axis::kTp] = kR;
  EXPECT_FALSE(CheckLayouts(graph_).ok());
}

}  // namespace
}  // namespace planc
