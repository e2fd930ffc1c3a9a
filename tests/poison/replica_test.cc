// Bytes of one replica that something changed are found after the step, on every kind of mesh and
// in every unit and state, with the tensor and the ranks named. That there is no false alarm is
// what every test shows that trains with RunMesh, mesh_equivalence_test on every mesh.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "runtime/step/session.h"
#include "schemas/plan.h"
#include "tests/mesh_cases.h"
#include "tests/mesh_run.h"

namespace planc {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

int64_t At(const Plan& plan, int64_t rank, Axis axis) {
  return plan.mesh.CoordinatesOf(rank)[static_cast<int>(axis)];
}

bool Holds(const Plan& plan, int64_t rank, const Unit& unit) {
  const RankClass& rank_class = plan.classes[At(plan, rank, Axis::kPp)];
  return rank_class.pool_slots[plan.buffers[unit.master].pool] > 0;
}

// The ranks other than `rank` that hold the same shard of a unit, found axis by axis.
std::vector<int64_t> OtherHolders(const Plan& plan, int64_t rank, const Unit& unit) {
  std::vector<int64_t> holders;
  for (int64_t other = 0; other < plan.mesh.WorldSize(); ++other) {
    const auto same = [&](Axis axis) { return At(plan, rank, axis) == At(plan, other, axis); };
    if (other == rank || !Holds(plan, other, unit) || !same(Axis::kDpShard)) continue;
    if (unit.tp_sharded && !same(Axis::kTp)) continue;
    if (unit.per_layer && !same(Axis::kPp)) continue;
    holders.push_back(other);
  }
  return holders;
}

// Turns over the lowest bit of a value: no norm or loss would show it.
void Flip(float* value) {
  uint32_t bits = 0;
  std::memcpy(&bits, value, sizeof(bits));
  bits ^= 1;
  std::memcpy(value, &bits, sizeof(bits));
}

MeshRun RunTouching(const Plan& plan, const std::function<void(const Session&, int)>& touch) {
  MeshRunOptions options;
  options.touch = touch;
  return RunMesh(plan, 3, "", options);
}

class ReplicaTest : public testing::TestWithParam<std::string> {
 protected:
  static Plan PlanOf(const std::string& name) {
    for (const MeshCase& mesh_case : AllMeshCases()) {
      if (mesh_case.name == name) return CompileMeshCase(mesh_case);
    }
    ADD_FAILURE() << "no mesh case " << name;
    return {};
  }
};

TEST_P(ReplicaTest, AFlippedBitIsFoundWhereverThereAreReplicas) {
  const Plan plan = PlanOf(GetParam());
  const int64_t rank = plan.mesh.WorldSize() - 1;
  int found = 0;
  for (size_t u = 0; u < plan.units.size(); ++u) {
    const Unit& unit = plan.units[u];
    if (!Holds(plan, rank, unit)) continue;
    const StateKind kind = kAllStateKinds[u % kStateKindCount];
    std::string name;
    const MeshRun run = RunTouching(plan, [&](const Session& session, int done) {
      if (session.rank() != rank || done != 2) return;
      for (const ShardView& shard : session.Shards()) {
        if (shard.unit != static_cast<int>(u)) continue;
        const std::vector<UnitBox> boxes =
            ShardBoxes(plan, shard.unit, At(plan, rank, Axis::kTp), shard.begin, shard.count);
        if (boxes.empty()) return;  // all of it is padding
        const UnitBox& last = boxes.back();
        name = ParameterName(plan.params[last.parameter].name, shard.layer);
        float* const states[] = {shard.master, shard.m, shard.v};
        Flip(states[static_cast<int>(kind)] + (last.unit_begin - shard.begin));
        return;
      }
    });
    const std::vector<int64_t> others = OtherHolders(plan, rank, unit);
    if (others.empty() || name.empty()) {
      EXPECT_THAT(run.errors, IsEmpty()) << unit.name;
      continue;
    }
    ++found;
    const std::string tensor = absl::StrCat(StateKindName(kind), " of ", name);
    const std::string all = absl::StrJoin(others, ", ");
    EXPECT_THAT(run.errors, SizeIs(plan.mesh.WorldSize())) << unit.name;
    EXPECT_THAT(
        run.errors,
        Each(AllOf(HasSubstr("DATA_LOSS: after step 2 replicas are not the same:\n  "),
                   HasSubstr(others.size() == 1
                                 ? absl::StrCat("ranks ", all, ", ", rank, " differ in ", tensor,
                                                "; which of them is wrong cannot be told")
                                 : absl::StrCat("rank ", rank, " has another ", tensor,
                                                " than ranks ", all, ", which agree")))))
        << unit.name;
  }
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(Meshes, ReplicaTest,
                         ::testing::Values("llama_dr2_ds2_z2_tp2", "llama_pp2_dr2_ds2_z1",
                                           "llama_pp2_ds2_z1_tp2", "llama_tied_pp2_dr2_full",
                                           "llama_tied_pp2_ds2_z3", "qwen2_ds2_z2_tp2_sp",
                                           "gpt2_pp2_dr2_ds2_z3_full"),
                         [](const auto& info) { return info.param; });

// A rotary table is computed once and read in every step.
TEST_F(ReplicaTest, AFlippedBitOfAConstantIsFound) {
  const Plan plan = PlanOf("llama_ds2_z2_tp2_sp");
  const MeshRun run = RunTouching(plan, [&](const Session& session, int done) {
    const std::vector<Buffer>& buffers = session.plan().buffers;
    const auto found = std::find_if(buffers.begin(), buffers.end(), [](const Buffer& buffer) {
      return buffer.name == "rope_table";
    });
    ASSERT_NE(found, buffers.end());
    const int table = static_cast<int>(found - buffers.begin());
    if (session.rank() == 1 && done == 2) Flip(static_cast<float*>(session.Address(table)) + 5);
  });
  EXPECT_THAT(run.errors, SizeIs(4));
  EXPECT_THAT(run.errors, Each(HasSubstr("rank 1 has another constant rope_table than ranks 0, 2, "
                                         "3, which agree")));
}

// What mesh_equivalence_test shows for fp32.
TEST_F(ReplicaTest, InBf16ReplicasAreTheSameToo) {
  for (const MeshCase& mesh_case : AllMeshCases()) {
    const MeshRun run = RunMesh(CompileMeshCase(mesh_case, {"precision.compute=bf16"}), 3);
    EXPECT_THAT(run.errors, IsEmpty()) << mesh_case.name;
  }
}

// Two of four: nobody can say who is right.
TEST_F(ReplicaTest, WithoutAMajorityAllAreNamed) {
  const Plan plan = PlanOf("llama_dr2_ds2_z2_tp2");
  const MeshRun run = RunTouching(plan, [&](const Session& session, int done) {
    if (done != 2 || session.rank() < 4) return;
    for (const ShardView& shard : session.Shards()) Flip(shard.v);
  });
  EXPECT_THAT(run.errors, SizeIs(8));
  EXPECT_THAT(run.errors,
              Each(AllOf(HasSubstr("cannot be told"), HasSubstr("; so do "),
                         HasSubstr("ranks 0, 1, 4, 5 differ in exp_avg_sq of model."))));
}

}  // namespace
}  // namespace planc
