// The most bytes live at one time are a lower bound of every arena that the compiler makes, and a
// near one.
#include "schemas/live_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "schemas/plan.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

using Bytes = std::array<int64_t, kMemoryKindCount>;

double Sum(const Bytes& bytes) {
  return static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), int64_t{0}));
}

TEST(LiveBytes, ArenasOfAllMeshesAreNotSmallerAndNotMuchLarger) {
  for (const MeshCase& mesh_case : AllMeshCases()) {
    const Plan plan = CompileMeshCase(mesh_case);
    // Of all stages: pools have the slots that the stage that needs the longest ones asks for.
    double least_ratio = 100;
    for (const RankClass& rank_class : plan.classes) {
      const Bytes live = LiveBytes(plan, rank_class);
      for (int kind = 0; kind < kMemoryKindCount; ++kind) {
        EXPECT_LE(live[kind], rank_class.arena_bytes[kind]) << mesh_case.name << " " << kind;
        EXPECT_EQ(live[kind] > 0, rank_class.arena_bytes[kind] > 0)
            << mesh_case.name << " " << kind;
      }
      least_ratio = std::min(least_ratio, Sum(rank_class.arena_bytes) / Sum(live));
    }
    EXPECT_LE(least_ratio, 1.09) << mesh_case.name;
  }
}

}  // namespace
}  // namespace planc
