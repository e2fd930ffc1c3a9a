#include "runtime/checkpoint/init_shard.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/philox.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "runtime/checkpoint/test_plan.h"

namespace planc {
namespace {

constexpr uint64_t kSeed = 1234;

// What the element of a parameter must start as.
float Expected(const Parameter& parameter, int layer, int64_t index) {
  if (parameter.ones) return 1.0f;
  if (parameter.init_std == 0) return 0.0f;
  const host::PhiloxKey key = host::MakePhiloxKey(kSeed, ParameterName(parameter.name, layer));
  return static_cast<float>(parameter.init_std) * host::NormalAt(key, static_cast<uint64_t>(index));
}

TEST(InitShardTest, EveryMeshStartsFromTheSameWeights) {
  for (const auto& [shards, tp] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {1, 2}, {3, 2}, {2, 3}, {5, 4}}) {
    const Plan plan = CheckpointTestPlan(1, 1, shards, tp);
    for (size_t u = 0; u < plan.units.size(); ++u) {
      const int unit = static_cast<int>(u);
      const int layer = plan.units[u].per_layer ? 2 : -1;
      const int64_t count = plan.units[u].elements / shards;
      for (int64_t rank = 0; rank < tp; ++rank) {
        for (int64_t shard = 0; shard < shards; ++shard) {
          std::vector<float> values(static_cast<size_t>(count), -7.0f);
          InitShard(plan, unit, layer, rank, shard * count, count, kSeed, values.data());
          for (int64_t i = 0; i < count; ++i) {
            const ElementPlace place = PlaceOf(plan, unit, rank, shard * count + i);
            const float expected = place.parameter < 0
                                       ? 0.0f
                                       : Expected(plan.params[place.parameter], layer, place.index);
            ASSERT_EQ(values[static_cast<size_t>(i)], expected)
                << "unit " << plan.units[u].name << " tp " << rank << " shard " << shard << " at "
                << i;
          }
        }
      }
    }
  }
}

TEST(InitShardTest, LayersAndSeedsDiffer) {
  const Plan plan = CheckpointTestPlan(1, 1, 1, 1);
  const auto values = [&](int layer, uint64_t seed) {
    std::vector<float> result(static_cast<size_t>(plan.units[1].elements));
    InitShard(plan, 1, layer, 0, 0, plan.units[1].elements, seed, result.data());
    return result;
  };
  EXPECT_EQ(values(0, 1), values(0, 1));
  EXPECT_NE(values(0, 1), values(1, 1));
  EXPECT_NE(values(0, 1), values(0, 2));
}

}  // namespace
}  // namespace planc
