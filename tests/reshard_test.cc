// A checkpoint of one mesh on another and back: for each pair of meshes A and B, a run on A is
// saved, loaded on B, saved there, loaded on A again and saved. All three checkpoints hold the same
// tensors bit for bit; what B trains from there agrees with the run that stayed on A to rounding,
// and what A trains after the round trip agrees bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/mesh_cases.h"
#include "tests/mesh_run.h"
#include "tests/saved_state.h"

namespace planc {
namespace {

constexpr int kSavedAt = 3;
constexpr int kSteps = 6;
constexpr double kTolerance = 1e-5;  // of losses, relative

struct MeshPair {
  const char* name;
  const char* family;
  const char* both;  // job keys, as `--set` takes them, separated by blanks
  const char* a;     // "pp,dp_replicate,dp_shard,tp" and more job keys
  const char* b;
};

// The vocabulary of 259 rows is padded for tp 2 and 4; layers take turns unevenly for pp 3; flat
// units are padded for dp_shard 3, 5, 6 and 7.
constexpr MeshPair kPairs[] = {
    {"one_to_eight", "llama", "", "1,1,1,1", "2,1,2,2 parallelism.zero=3"},
    {"tp_to_dp", "llama", "", "1,1,1,4 parallelism.sequence_parallel=true",
     "1,1,4,1 parallelism.zero=3"},
    {"dp8_to_pp4", "llama", "", "1,1,8,1 parallelism.zero=2",
     "4,1,1,1 parallelism.pipeline.schedule=gpipe"},
    {"zero1_to_zero3", "llama", "", "1,1,4,1 parallelism.zero=1", "1,1,4,1 parallelism.zero=3"},
    {"zero2_to_replicas", "llama", "", "1,1,2,1 parallelism.zero=2", "1,4,1,1"},
    {"uneven_to_tp2", "llama", "", "3,1,1,1 parallelism.pipeline.stage_layers=[1,2,1]", "1,2,1,2"},
    {"uneven6_to_one", "llama", "",
     "3,1,2,1 parallelism.pipeline.stage_layers=[2,1,1] parallelism.zero=2", "1,1,1,1"},
    {"interleaved_to_hybrid", "llama", "",
     "2,1,1,1 parallelism.pipeline.schedule=interleaved_1f1b "
     "parallelism.pipeline.virtual_stages=2",
     "1,2,2,2 parallelism.zero=3 parallelism.sequence_parallel=true"},
    {"dp3_to_dp6", "llama", "batch.global=12", "1,1,3,1 parallelism.zero=3",
     "1,2,3,1 parallelism.zero=1"},
    {"dp5_to_tp4", "llama", "batch.global=10", "1,1,5,1 parallelism.zero=2", "1,1,1,4"},
    {"dp7_to_pp2", "llama", "batch.global=14", "1,1,7,1 parallelism.zero=3", "2,1,1,2"},
    {"tied_pp_to_tp", "llama", "model.tie_embeddings=true", "2,1,2,1 parallelism.zero=3",
     "1,1,1,4"},
    {"tied_pp4_to_dp8", "llama", "model.tie_embeddings=true", "4,1,1,2",
     "1,1,8,1 parallelism.zero=3"},
    {"qwen2", "qwen2", "", "1,1,2,2 parallelism.zero=2 parallelism.sequence_parallel=true",
     "2,2,1,1"},
    {"qwen3", "qwen3", "", "1,1,1,2", "2,1,2,2 parallelism.zero=3"},
    {"gpt2_pp_tp_to_zero3", "gpt2", "", "2,1,1,2 parallelism.sequence_parallel=true",
     "1,1,8,1 parallelism.zero=3"},
    {"gpt2_zero3_to_tp4", "gpt2", "", "2,2,2,1 parallelism.zero=3 recompute=full",
     "1,1,1,4 recompute=selective"},
    {"gpt2_dp3_to_uneven", "gpt2", "batch.global=12", "1,1,3,1 parallelism.zero=1",
     "3,1,1,2 parallelism.pipeline.stage_layers=[1,1,2]"},
};

Plan PlanOf(const MeshPair& pair, const std::string& mesh, const std::string& resume) {
  const std::vector<std::string> words = absl::StrSplit(mesh, ' ');
  const std::vector<std::string> sizes = absl::StrSplit(words[0], ',');
  const std::vector<std::string> axes = {"pp", "dp_replicate", "dp_shard", "tp"};
  MeshCase mesh_case{pair.name, pair.family, {words.begin() + 1, words.end()}};
  int ranks = 1;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    ranks *= std::stoi(sizes[axis]);
    mesh_case.sets.push_back(absl::StrCat("mesh.", axes[axis], "=", sizes[axis]));
  }
  mesh_case.sets.push_back(absl::StrCat("cluster.gpus_per_node=", ranks));
  const std::vector<std::string> both = absl::StrSplit(pair.both, ' ', absl::SkipEmpty());
  mesh_case.sets.insert(mesh_case.sets.end(), both.begin(), both.end());
  return CompileMeshCase(mesh_case, {absl::StrCat("checkpoint.every_steps=", kSavedAt),
                                     "checkpoint.resume=" + resume});
}

Tensors StateAt(const std::string& checkpoint) {
  absl::StatusOr<Tensors> state = ReadSavedState(checkpoint);
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() ? *std::move(state) : Tensors{};
}

void ExpectSameState(const Tensors& expected, const std::string& checkpoint) {
  for (const std::string& name : DifferingTensors(expected, StateAt(checkpoint))) {
    ADD_FAILURE() << checkpoint << ": " << name << " differs";
  }
}

class ReshardTest : public ::testing::TestWithParam<MeshPair> {
 protected:
  ReshardTest() : folder_(absl::StrCat(::testing::TempDir(), "/reshard_", GetParam().name)) {
    std::filesystem::remove_all(folder_);
  }
  ~ReshardTest() override { std::filesystem::remove_all(folder_); }

  // Runs from the checkpoint `resume` to the end, and writes checkpoints into folder `name`.
  MeshRun Run(const char* mesh, const std::string& name, const std::string& resume) {
    MeshRun run =
        RunMesh(PlanOf(GetParam(), mesh, resume), kSteps, absl::StrCat(folder_, "/", name));
    EXPECT_TRUE(run.errors.empty()) << name << ": " << run.errors.front();
    return run;
  }
  std::string Saved(const std::string& name, int step) const {
    return absl::StrCat(folder_, "/", name, "/step-0000000", step);
  }

  const std::string folder_;
};

TEST_P(ReshardTest, TheRoundTripIsBitIdentical) {
  const MeshRun stayed = Run(GetParam().a, "a", "never");
  const MeshRun on_b = Run(GetParam().b, "b", Saved("a", kSavedAt));
  const MeshRun back = Run(GetParam().a, "back", Saved("b", kSavedAt));
  if (HasFailure()) return;
  EXPECT_EQ(on_b.first_step, kSavedAt);
  EXPECT_EQ(back.first_step, kSavedAt);

  const Tensors saved = StateAt(Saved("a", kSavedAt));
  ASSERT_GT(saved.size(), 3u * 4u);
  ExpectSameState(saved, Saved("b", kSavedAt));
  ExpectSameState(saved, Saved("back", kSavedAt));
  ExpectSameState(StateAt(Saved("a", kSteps)), Saved("back", kSteps));

  double distance = 0;
  for (int step = kSavedAt; step < kSteps; ++step) {
    EXPECT_EQ(back.losses[step], stayed.losses[step]) << "step " << step;
    EXPECT_EQ(back.grad_norms[step], stayed.grad_norms[step]) << "step " << step;
    distance =
        std::max(distance, std::abs(on_b.losses[step] - stayed.losses[step]) / stayed.losses[step]);
  }
  EXPECT_LE(distance, kTolerance);
  std::printf("%-24s %3zu tensors bit-identical, losses on the other mesh within %.1e\n",
              GetParam().name, saved.size(), distance);
}

INSTANTIATE_TEST_SUITE_P(Pairs, ReshardTest, ::testing::ValuesIn(kPairs),
                         [](const auto& info) { return info.param.name; });

TEST(ReshardPairs, CoverEveryNumberOfRanksUpToEight) {
  std::set<int64_t> ranks;
  for (const MeshPair& pair : kPairs) {
    for (const char* const mesh : {pair.a, pair.b}) {
      ranks.insert(PlanOf(pair, mesh, "never").mesh.WorldSize());
    }
  }
  EXPECT_EQ(ranks, (std::set<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  std::printf("%zu pairs of meshes\n", std::size(kPairs));
  EXPECT_GE(std::size(kPairs), 12u);
}

}  // namespace
}  // namespace planc
