#include "runtime/checkpoint/load.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/status.h"

namespace planc {
namespace {

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

}  // namespace

absl::StatusOr<int64_t> LoadCheckpoint(const Plan& plan, int64_t tp, const std::string& checkpoint,
                                       const std::vector<ShardView>& shards) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  const ResumeCheck shapes = {{}, CompareWithCheckpoint(plan, manifest).shapes, ""};
  PLANC_RETURN_IF_ERROR(RefusalOf(shapes, checkpoint));
  PLANC_RETURN_IF_ERROR(LoadTensors(plan, tp, checkpoint, manifest, shards));
  return manifest.step;
}

absl::Status LoadTensors(const Plan& plan, int64_t tp, const std::string& checkpoint,
                         const Manifest& manifest, const std::vector<ShardView>& shards) {
  SavedTensors saved(checkpoint, manifest);
  for (const ShardView& shard : shards) {
    const std::vector<UnitBox> pieces = ShardBoxes(plan, shard.unit, tp, shard.begin, shard.count);
    for (const StateKind kind : kAllStateKinds) {
      float* const state = StateOf(shard, kind);
      std::fill_n(state, shard.count, 0.0f);  // padding
      for (const UnitBox& piece : pieces) {
        const std::string name = ParameterName(plan.params[piece.parameter].name, shard.layer);
        const absl::Status status =
            saved.Read(name, kind, piece.box, state + (piece.unit_begin - shard.begin));
        PLANC_RETURN_IF_ERROR(
            WithContext(status, absl::StrCat("loading ", StateKindName(kind), " of ", name)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace planc
