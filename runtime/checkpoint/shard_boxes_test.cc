#include "runtime/checkpoint/shard_boxes.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/checkpoint/test_plan.h"

namespace planc {
namespace {

// Compares the boxes of elements [begin, begin + count) with PlaceOf, element by element.
void ExpectBoxesMatch(const Plan& plan, int64_t tp, int64_t begin, int64_t count) {
  std::vector<ElementPlace> found(static_cast<size_t>(count));
  int64_t last = begin;
  for (const UnitBox& piece : ShardBoxes(plan, 0, tp, begin, count)) {
    const std::vector<int64_t>& shape = plan.params[piece.parameter].shape;
    ASSERT_GE(piece.unit_begin, last);
    last = piece.unit_begin + BoxElements(piece.box);
    ASSERT_LE(last, begin + count);
    for (int64_t i = 0; i < BoxElements(piece.box); ++i) {
      int64_t rest = i;
      int64_t index = 0;
      int64_t stride = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        const int64_t at = piece.box.offset[d] + rest % piece.box.shape[d];
        ASSERT_LT(at, shape[d]);
        index += at * stride;
        stride *= shape[d];
        rest /= piece.box.shape[d];
      }
      found[static_cast<size_t>(piece.unit_begin - begin + i)] = {piece.parameter, index};
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const ElementPlace expected = PlaceOf(plan, 0, tp, begin + i);
    const ElementPlace& place = found[static_cast<size_t>(i)];
    ASSERT_EQ(place.parameter, expected.parameter) << "element " << begin + i;
    if (place.parameter < 0) continue;
    ASSERT_EQ(place.index, expected.index) << "element " << begin + i;
  }
}

// A plan of one unit with up to three parameters of random shape, split over `tp` anywhere.
Plan RandomPlan(std::mt19937& random, int64_t tp) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Plan plan;
  plan.mesh.size = {1, 1, 1, 1, tp};
  Unit unit;
  unit.tp_sharded = tp > 1;
  const int params = pick(1, 3);
  for (int i = 0; i < params; ++i) {
    Parameter p;
    p.name = "p" + std::to_string(i);
    const int dims = pick(1, 3);
    for (int d = 0; d < dims; ++d) p.shape.push_back(pick(1, 7));
    p.tp_dim = tp > 1 ? pick(-1, dims - 1) : -1;
    p.local_shape = p.shape;
    if (p.tp_dim >= 0) {
      p.local_shape[p.tp_dim] = (p.shape[p.tp_dim] + tp - 1) / tp + pick(0, 1);
    }
    p.unit_offset = unit.elements;
    int64_t elements = 1;
    for (const int64_t size : p.local_shape) elements *= size;
    unit.elements += elements;
    plan.params.push_back(p);
  }
  unit.elements += pick(0, 5);
  plan.units.push_back(unit);
  return plan;
}

TEST(ShardBoxesTest, EveryElementWhereItBelongs) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const int64_t tp = 1 + static_cast<int64_t>(random() % 4);
    const Plan plan = RandomPlan(random, tp);
    const int64_t elements = plan.units[0].elements;
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(elements));
    const int64_t count =
        static_cast<int64_t>(random() % static_cast<uint64_t>(elements - begin + 1));
    for (int64_t rank = 0; rank < tp; ++rank) {
      ExpectBoxesMatch(plan, rank, begin, count);
      ExpectBoxesMatch(plan, rank, 0, elements);
      if (HasFatalFailure()) FAIL() << "trial " << trial;
    }
  }
}

TEST(ShardBoxesTest, AMatrixIsCutIntoAtMostThreeBoxes) {
  Plan plan;
  plan.units.resize(1);
  plan.params.resize(1);
  plan.params[0].shape = plan.params[0].local_shape = {8, 5};
  const std::vector<UnitBox> boxes = ShardBoxes(plan, 0, 0, 3, 20);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[0].box, (Box{{0, 3}, {1, 2}}));
  EXPECT_EQ(boxes[1].box, (Box{{1, 0}, {3, 5}}));
  EXPECT_EQ(boxes[2].box, (Box{{4, 0}, {1, 3}}));
  EXPECT_EQ(boxes[2].unit_begin, 20);
}

TEST(ShardBoxesTest, Intersection) {
  const Box common = Intersect({{0, 2}, {4, 4}}, {{2, 0}, {4, 4}});
  EXPECT_EQ(common, (Box{{2, 2}, {2, 2}}));
  EXPECT_EQ(BoxElements(Intersect({{0}, {3}}, {{3}, {3}})), 0);
  EXPECT_EQ(BoxElements(Intersect({{0}, {3}}, {{7}, {3}})), 0);
}

TEST(ShardBoxesTest, NameOfALayersParameter) {
  EXPECT_EQ(ParameterName("model.layers.{layer}.norm.weight", 12), "model.layers.12.norm.weight");
  EXPECT_EQ(ParameterName("lm_head.weight", -1), "lm_head.weight");
}

}  // namespace
}  // namespace planc
