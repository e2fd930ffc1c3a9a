#include "runtime/checkpoint/load.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/status.h"

namespace planc {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Fails unless the checkpoint has exactly the parameters of the plan's model.
absl::Status CheckModel(const Plan& plan, const Manifest& manifest, const std::string& checkpoint) {
  std::vector<std::string> differences;
  std::set<std::string> expected;
  for (const Parameter& parameter : plan.params) {
    const bool per_layer = plan.units[parameter.unit].per_layer;
    const int64_t layers = per_layer ? plan.job.model().layers() : 1;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const std::string name = ParameterName(parameter.name, static_cast<int>(layer));
      expected.insert(name);
      const auto saved = manifest.parameters.find(name);
      if (saved == manifest.parameters.end()) {
        differences.push_back(absl::StrCat(name, " is not in the checkpoint"));
      } else if (saved->second.shape != parameter.shape) {
        differences.push_back(absl::StrCat(name, " is ", ShapeText(saved->second.shape),
                                           " in the checkpoint, ", ShapeText(parameter.shape),
                                           " in the job"));
      }
    }
  }
  for (const auto& [name, saved] : manifest.parameters) {
    if (expected.count(name) == 0) differences.push_back(absl::StrCat(name, " is not in the job"));
  }
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      checkpoint, ": is of another model: ", differences[0],
      differences.size() > 1 ? absl::StrCat(" (and ", differences.size() - 1, " more differences)")
                             : ""));
}

float* StateOf(const ShardView& shard, StateKind kind) {
  switch (kind) {
    case StateKind::kMaster:
      return shard.master;
    case StateKind::kFirstMoment:
      return shard.m;
    case StateKind::kSecondMoment:
      return shard.v;
  }
  return nullptr;
}

// A checkpoint under `auto` that some rank cannot read; the next older one is used instead.
bool MayPassOver(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss ||
         status.code() == absl::StatusCode::kNotFound;
}

absl::StatusOr<std::optional<int64_t>> ResumeNewest(const Plan& plan, int64_t tp,
                                                    const std::string& directory,
                                                    const std::vector<ShardView>& shards,
                                                    Agreement& agreement,
                                                    std::vector<std::string>* notices) {
  std::vector<CheckpointEntry> entries = ListCheckpoints(directory);
  std::vector<int64_t> steps;
  for (const CheckpointEntry& entry : entries) steps.push_back(entry.step);
  PLANC_RETURN_IF_ERROR(agreement.SameEverywhere(
      absl::StrCat("the list of checkpoints in ", directory), absl::StrJoin(steps, " ")));
  if (entries.empty()) return std::optional<int64_t>();
  std::reverse(entries.begin(), entries.end());
  for (const CheckpointEntry& entry : entries) {
    const absl::StatusOr<int64_t> loaded = LoadCheckpoint(plan, tp, entry.path, shards);
    const absl::Status all = agreement.AllOk(loaded.status());
    if (all.ok()) return std::optional<int64_t>(*loaded);
    if (!MayPassOver(all)) return all;
    notices->push_back(absl::StrCat("passing over ", entry.path, ": ", std::string(all.message())));
  }
  return absl::DataLossError(
      absl::StrCat(directory, ": none of ", entries.size(),
                   " checkpoints can be read; the newest: ", notices->front()));
}

}  // namespace

absl::StatusOr<int64_t> LoadCheckpoint(const Plan& plan, int64_t tp, const std::string& checkpoint,
                                       const std::vector<ShardView>& shards) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  PLANC_RETURN_IF_ERROR(CheckModel(plan, manifest, checkpoint));
  SavedTensors saved(checkpoint, manifest);
  for (const ShardView& shard : shards) {
    const std::vector<UnitBox> pieces = ShardBoxes(plan, shard.unit, tp, shard.begin, shard.count);
    for (const StateKind kind : kAllStateKinds) {
      float* const state = StateOf(shard, kind);
      std::fill_n(state, shard.count, 0.0f);  // padding
      for (const UnitBox& piece : pieces) {
        const std::string name = ParameterName(plan.params[piece.parameter].name, shard.layer);
        PLANC_RETURN_IF_ERROR(
            saved.Read(name, kind, piece.box, state + (piece.unit_begin - shard.begin)));
      }
    }
  }
  return manifest.step;
}

absl::StatusOr<std::optional<int64_t>> ResumeTraining(
    const Plan& plan, int64_t tp, const std::string& directory, const std::string& base,
    const std::vector<ShardView>& shards, Agreement& agreement, std::vector<std::string>* notices) {
  const std::string& resume = plan.job.checkpoint().resume();
  if (resume == "never") return std::optional<int64_t>();
  if (resume == "auto") return ResumeNewest(plan, tp, directory, shards, agreement, notices);
  const absl::StatusOr<int64_t> loaded = LoadCheckpoint(plan, tp, PathIn(base, resume), shards);
  PLANC_RETURN_IF_ERROR(agreement.AllOk(loaded.status()));
  return std::optional<int64_t>(*loaded);
}

}  // namespace planc
