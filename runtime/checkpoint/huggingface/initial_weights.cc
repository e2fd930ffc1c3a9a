#include "runtime/checkpoint/huggingface/initial_weights.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/huggingface/import.h"
#include "runtime/checkpoint/huggingface/model_folder.h"
#include "runtime/checkpoint/huggingface/tensor_layout.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/status.h"

namespace planc {
namespace {

// What a path is: a Hugging Face folder, or a checkpoint, whose path is `checkpoint`.
struct Source {
  bool huggingface = false;
  std::string checkpoint;
};

absl::StatusOr<Source> SourceAt(const std::string& path) {
  Source source;
  PLANC_ASSIGN_OR_RETURN(source.huggingface, IsFileThere(absl::StrCat(path, "/config.json")));
  if (source.huggingface) return source;
  PLANC_ASSIGN_OR_RETURN(const bool named, IsFileThere(absl::StrCat(path, "/", kManifestName)));
  source.checkpoint = path;
  if (named) return source;
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, FindCheckpoints(path));
  if (entries.empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": neither a complete checkpoint nor a Hugging Face folder is here"));
  }
  source.checkpoint = entries.back().path;
  return source;
}

absl::Status Misfit(const std::string& path, const std::vector<std::string>& reasons) {
  if (reasons.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": checkpoint.initial is of another model:\n  ", absl::StrJoin(reasons, "\n  ")));
}

// Where one rank keeps a part of a parameter.
struct Place {
  Box box;
  float* master;
};

// By full name of the parameter.
std::map<std::string, std::vector<Place>> PlacesOf(const Plan& plan, int64_t tp,
                                                   const std::vector<ShardView>& shards) {
  std::map<std::string, std::vector<Place>> places;
  for (const ShardView& shard : shards) {
    for (const UnitBox& piece : ShardBoxes(plan, shard.unit, tp, shard.begin, shard.count)) {
      const std::string name = ParameterName(plan.params[piece.parameter].name, shard.layer);
      places[name].push_back({piece.box, shard.master + (piece.unit_begin - shard.begin)});
    }
  }
  return places;
}

// Padding of master weights is zero too.
void Clear(const std::vector<ShardView>& shards, bool masters) {
  for (const ShardView& shard : shards) {
    if (masters) std::fill_n(shard.master, shard.count, 0.0f);
    std::fill_n(shard.m, shard.count, 0.0f);
    std::fill_n(shard.v, shard.count, 0.0f);
  }
}

// Each tensor of which this rank holds a part is read whole; two are in memory at most.
absl::Status LoadFolder(const std::string& path, const Plan& plan, int64_t tp,
                        const std::vector<ShardView>& shards) {
  PLANC_ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(path));
  const std::map<std::string, SavedParameter> parameters = ParametersOf(plan);
  const std::map<std::string, std::vector<Place>> places = PlacesOf(plan, tp, shards);
  std::vector<float> joined;
  std::vector<float> values;
  for (const FolderTensor& tensor : FolderTensors(parameters)) {
    const auto held = [&](const std::string& name) { return places.count(name) > 0; };
    if (std::none_of(tensor.parameters.begin(), tensor.parameters.end(), held)) continue;
    joined.resize(static_cast<size_t>(BoxElements(Box{{}, tensor.shape})));
    PLANC_RETURN_IF_ERROR(folder.Read(tensor.name, joined.data()));
    values.resize(joined.size() / tensor.parameters.size());
    for (size_t part = 0; part < tensor.parameters.size(); ++part) {
      const auto found = places.find(tensor.parameters[part]);
      if (found == places.end()) continue;
      SplitParameter(tensor, part, joined.data(), values.data());
      const std::vector<int64_t>& shape = parameters.at(found->first).shape;
      const Box whole{std::vector<int64_t>(shape.size(), 0), shape};
      for (const Place& place : found->second) {
        CopyCommon(whole, values.data(), place.box, place.master);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInitialWeights(const std::string& path, const Plan& plan) {
  PLANC_ASSIGN_OR_RETURN(const Source source, SourceAt(path));
  if (source.huggingface) {
    PLANC_ASSIGN_OR_RETURN(const ImportReport report, InspectFolder(path, plan));
    return Misfit(path, report.problems);
  }
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(source.checkpoint));
  return Misfit(source.checkpoint, CompareWithCheckpoint(plan, manifest).shapes);
}

absl::Status LoadInitialWeights(const std::string& path, const Plan& plan, int64_t tp,
                                const std::vector<ShardView>& shards) {
  PLANC_RETURN_IF_ERROR(CheckInitialWeights(path, plan));
  PLANC_ASSIGN_OR_RETURN(const Source source, SourceAt(path));
  if (source.huggingface) {
    Clear(shards, /*masters=*/true);
    return LoadFolder(path, plan, tp, shards);
  }
  PLANC_RETURN_IF_ERROR(LoadCheckpoint(plan, tp, source.checkpoint, shards).status());
  Clear(shards, /*masters=*/false);
  return absl::OkStatus();
}

}  // namespace planc
