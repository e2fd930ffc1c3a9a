#include "runtime/checkpoint/save.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Metadata entry of a shard file that tells rank 0 what its tensors are.
constexpr char kIndexName[] = "planc_index";

std::string ShardFileName(int64_t rank) { return absl::StrFormat("rank-%05d.safetensors", rank); }

bool HoldsUnit(const Plan& plan, int64_t stage, int unit) {
  return plan.classes[stage].pool_slots[plan.buffers[plan.units[unit].master].pool] > 0;
}

bool WritesAnything(const Plan& plan, int64_t rank) {
  for (size_t unit = 0; unit < plan.units.size(); ++unit) {
    if (WritesUnit(plan, rank, static_cast<int>(unit))) return true;
  }
  return false;
}

// The tensors that one rank writes, and the index that describes them.
class ShardFileContents {
 public:
  explicit ShardFileContents(const Plan& plan) : plan_(plan) {}

  void Add(const ShardView& shard, int64_t tp) {
    for (const UnitBox& piece : ShardBoxes(plan_, shard.unit, tp, shard.begin, shard.count)) {
      const Parameter& parameter = plan_.params[piece.parameter];
      const std::string name = ParameterName(parameter.name, shard.layer);
      const int64_t number = pieces_[name]++;
      const int64_t at = piece.unit_begin - shard.begin;
      AddTensor(name, StateKind::kMaster, number, piece.box, shard.master + at);
      AddTensor(name, StateKind::kFirstMoment, number, piece.box, shard.m + at);
      AddTensor(name, StateKind::kSecondMoment, number, piece.box, shard.v + at);
    }
  }

  absl::Status Write(const std::string& path) const {
    return WriteSafetensors(path, tensors_, {{kIndexName, index_.dump()}});
  }

 private:
  void AddTensor(const std::string& name, StateKind kind, int64_t number, const Box& box,
                 const float* data) {
    const std::string key = absl::StrCat(name, ".", StateKindName(kind), ".", number);
    const int64_t bytes = BoxElements(box) * static_cast<int64_t>(sizeof(float));
    tensors_.push_back({key, box.shape, data});
    index_.push_back({{"key", key},
                      {"parameter", name},
                      {"state", static_cast<int>(kind)},
                      {"offset", box.offset},
                      {"xxh3_64", HexText(Checksum(data, bytes))}});
  }

  const Plan& plan_;
  std::vector<TensorData> tensors_;
  Json index_ = Json::array();
  std::map<std::string, int64_t> pieces_;  // of each parameter so far
};

absl::Status WriteShardFile(const Plan& plan, int64_t rank, const std::vector<ShardView>& shards,
                            const std::string& folder) {
  if (!WritesAnything(plan, rank)) return absl::OkStatus();
  const int64_t tp = plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kTp)];
  ShardFileContents contents(plan);
  for (const ShardView& shard : shards) {
    if (WritesUnit(plan, rank, shard.unit)) contents.Add(shard, tp);
  }
  return contents.Write(absl::StrCat(folder, "/", ShardFileName(rank)));
}

// Enters the tensors of one shard file, as its index describes them.
absl::Status CollectShardFile(const std::string& folder, const std::string& name,
                              Manifest* manifest) {
  const std::string path = absl::StrCat(folder, "/", name);
  PLANC_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  manifest->files[name] = {file.bytes(), file.header_checksum()};
  const auto index_text = file.metadata().find(kIndexName);
  const Json index = index_text == file.metadata().end()
                         ? Json()
                         : Json::parse(index_text->second, nullptr, /*allow_exceptions=*/false);
  if (!index.is_array()) return absl::DataLossError(absl::StrCat(path, ": no index"));
  for (const Json& entry : index) {
    SavedTensor tensor;
    tensor.file = name;
    std::string parameter;
    int64_t state = 0;
    const bool complete =
        ReadField(entry, "key", &tensor.key) && ReadField(entry, "parameter", &parameter) &&
        ReadField(entry, "state", &state) && ReadField(entry, "offset", &tensor.box.offset) &&
        ReadHexField(entry, "xxh3_64", &tensor.checksum);
    const auto saved = file.tensors().find(tensor.key);
    const auto whole = manifest->parameters.find(parameter);
    if (!complete || saved == file.tensors().end() || whole == manifest->parameters.end() ||
        state < 0 || state >= kStateKindCount) {
      return absl::DataLossError(absl::StrCat(path, ": damaged index"));
    }
    tensor.box.shape = saved->second.shape;
    whole->second.state[static_cast<size_t>(state)].push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> CollectManifest(const Plan& plan, int64_t step,
                                         const std::string& folder) {
  Manifest manifest;
  manifest.step = step;
  manifest.job = plan.job;
  PLANC_ASSIGN_OR_RETURN(manifest.plan_hash, PlanHash(plan));
  for (const Parameter& parameter : plan.params) {
    const bool per_layer = plan.units[parameter.unit].per_layer;
    const int64_t layers = per_layer ? plan.job.model().layers() : 1;
    for (int64_t layer = 0; layer < layers; ++layer) {
      SavedParameter& saved =
          manifest.parameters[ParameterName(parameter.name, static_cast<int>(layer))];
      saved.shape = parameter.shape;
      saved.transposed = parameter.transposed;
    }
  }
  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    if (!WritesAnything(plan, rank)) continue;
    PLANC_RETURN_IF_ERROR(WithContext(CollectShardFile(folder, ShardFileName(rank), &manifest),
                                      "checkpoint.directory must be shared by all ranks"));
  }
  return manifest;
}

// What rank 0 does once all shard files are on the disk.
absl::Status Complete(const Plan& plan, int64_t step, const std::string& directory) {
  const std::string folder = UnfinishedPath(directory, step);
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, CollectManifest(plan, step, folder));
  PLANC_ASSIGN_OR_RETURN(const std::string text, ManifestText(manifest));
  const FilePieces pieces = {{text.data(), static_cast<int64_t>(text.size())}};
  PLANC_RETURN_IF_ERROR(WriteDurably(absl::StrCat(folder, "/", kManifestName), pieces));
  PLANC_RETURN_IF_ERROR(SyncDirectory(folder));
  PLANC_RETURN_IF_ERROR(FinishCheckpoint(directory, step));
  return PruneCheckpoints(directory, plan.job.checkpoint().keep());
}

}  // namespace

bool WritesUnit(const Plan& plan, int64_t rank, int unit) {
  const Coordinates at = plan.mesh.CoordinatesOf(rank);
  const int64_t stage = at[static_cast<int>(Axis::kPp)];
  if (at[static_cast<int>(Axis::kDpReplicate)] != 0 || at[static_cast<int>(Axis::kCp)] != 0) {
    return false;
  }
  if (!plan.units[unit].tp_sharded && at[static_cast<int>(Axis::kTp)] != 0) return false;
  if (!HoldsUnit(plan, stage, unit)) return false;
  // A layer lives on one stage only; a tied table is saved by the first of its stages.
  if (plan.units[unit].per_layer) return true;
  for (int64_t before = 0; before < stage; ++before) {
    if (HoldsUnit(plan, before, unit)) return false;
  }
  return true;
}

absl::Status SaveCheckpoint(const Plan& plan, int64_t rank, const std::vector<ShardView>& shards,
                            int64_t step, const std::string& directory, Agreement& agreement) {
  absl::Status mine;
  if (rank == 0) mine = BeginCheckpoint(directory, step).status();
  PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
  mine = WriteShardFile(plan, rank, shards, UnfinishedPath(directory, step));
  PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
  if (rank == 0) mine = Complete(plan, step, directory);
  return agreement.AllOk(mine);
}

}  // namespace planc
