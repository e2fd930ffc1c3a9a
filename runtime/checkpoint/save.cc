#include "runtime/checkpoint/save.h"

#include <algorithm>
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

  absl::Status Write(const std::string& path, const FileSystem& files) {
    const auto metadata = [this](const std::vector<uint64_t>& checksums) {
      for (size_t i = 0; i < checksums.size(); ++i) index_[i]["xxh3_64"] = HexText(checksums[i]);
      return std::map<std::string, std::string>{{kIndexName, index_.dump()}};
    };
    return WriteChecksummedSafetensors(path, tensors_, metadata, files);
  }

 private:
  void AddTensor(const std::string& name, StateKind kind, int64_t number, const Box& box,
                 const float* data) {
    const std::string key = absl::StrCat(name, ".", StateKindName(kind), ".", number);
    tensors_.push_back({key, box.shape, data, box.offset});
    index_.push_back({{"key", key},
                      {"parameter", name},
                      {"state", static_cast<int>(kind)},
                      {"offset", box.offset}});
  }

  const Plan& plan_;
  std::vector<TensorData> tensors_;
  Json index_ = Json::array();             // of the same tensors
  std::map<std::string, int64_t> pieces_;  // of each parameter so far
};

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

// One save, as one rank sees it.
class CheckpointWriter {
 public:
  CheckpointWriter(const Plan& plan, int64_t rank, int64_t step, const std::string& directory,
                   const SaveOptions& options, const FileSystem& files)
      : plan_(plan),
        rank_(rank),
        step_(step),
        directory_(directory),
        folder_(UnfinishedPath(directory, step)),
        options_(options),
        files_(files) {}

  absl::StatusOr<SavedCheckpoint> Write(const std::vector<ShardView>& shards,
                                        Agreement& agreement) {
    absl::Status mine;
    if (rank_ == 0) mine = BeginCheckpoint(directory_, step_, files_, options_.run_id).status();
    PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
    mine = WriteShardFile(shards);
    PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
    SavedCheckpoint saved;
    saved.step = step_;
    if (rank_ == 0) mine = Commit(&saved);
    PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
    if (rank_ != 0) return saved;
    const int64_t keep =
        std::max<int64_t>(plan_.job.checkpoint().keep(), options_.keep_proven ? 2 : 1);
    const absl::Status pruned = PruneCheckpoints(directory_, keep, step_, files_, options_.run_id);
    if (!pruned.ok()) {
      saved.notice = absl::StrCat("older checkpoints stay: ", std::string(pruned.message()));
    }
    return saved;
  }

 private:
  absl::Status WriteShardFile(const std::vector<ShardView>& shards) const {
    if (!WritesAnything(plan_, rank_)) return absl::OkStatus();
    const int64_t tp = plan_.mesh.CoordinatesOf(rank_)[static_cast<int>(Axis::kTp)];
    ShardFileContents contents(plan_);
    for (const ShardView& shard : shards) {
      if (WritesUnit(plan_, rank_, shard.unit)) contents.Add(shard, tp);
    }
    const absl::Status written =
        contents.Write(absl::StrCat(folder_, "/", ShardFileName(rank_)), files_);
    if (!absl::IsOutOfRange(written)) return written;
    return WithContext(written, absl::StrCat("the training state after step ", step_,
                                             " is not finite, and is not saved"));
  }

  // What rank 0 does once all shard files are on the disk. The last rename makes the checkpoint.
  absl::Status Commit(SavedCheckpoint* saved) const {
    PLANC_ASSIGN_OR_RETURN(const Manifest manifest, CollectManifest());
    PLANC_ASSIGN_OR_RETURN(const std::string text, ManifestText(manifest));
    saved->bytes = static_cast<int64_t>(text.size());
    for (const auto& [name, file] : manifest.files) saved->bytes += file.bytes;
    const FilePieces pieces = {{text.data(), static_cast<int64_t>(text.size())}};
    PLANC_RETURN_IF_ERROR(WriteDurably(absl::StrCat(folder_, "/", kManifestName), pieces, files_));
    PLANC_RETURN_IF_ERROR(SyncDirectory(folder_, files_));
    if (options_.before_commit) PLANC_RETURN_IF_ERROR(options_.before_commit());
    PLANC_RETURN_IF_ERROR(FinishCheckpoint(directory_, step_, files_, options_.run_id));
    if (options_.tip != nullptr) {
      *options_.tip = {options_.run_id, step_, Checksum(text.data(), pieces[0].second)};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Manifest> CollectManifest() const {
    Manifest manifest;
    manifest.step = step_;
    manifest.finite = true;  // else no shard file was written
    manifest.run = {options_.run_id, options_.branch};
    if (options_.tip != nullptr) manifest.parent = *options_.tip;
    manifest.job = plan_.job;
    manifest.mesh = plan_.mesh;
    manifest.versions = options_.versions;
    if (options_.data != nullptr) manifest.data = options_.data(step_);
    if (options_.instruction_set.has_value()) {
      manifest.instruction_set = host::InstructionSetName(*options_.instruction_set);
      manifest.bits = host::InstructionSetBits(*options_.instruction_set);
    }
    PLANC_ASSIGN_OR_RETURN(manifest.plan_hash, PlanHash(plan_));
    manifest.parameters = ParametersOf(plan_);
    for (int64_t rank = 0; rank < plan_.mesh.WorldSize(); ++rank) {
      if (!WritesAnything(plan_, rank)) continue;
      PLANC_RETURN_IF_ERROR(WithContext(CollectShardFile(folder_, ShardFileName(rank), &manifest),
                                        "checkpoint.directory must be shared by all ranks"));
    }
    return manifest;
  }

  const Plan& plan_;
  const int64_t rank_;
  const int64_t step_;
  const std::string& directory_;
  const std::string folder_;  // what is written until it is complete
  const SaveOptions& options_;
  const FileSystem& files_;
};

}  // namespace

absl::StatusOr<SavedCheckpoint> WriteCheckpoint(const Plan& plan, int64_t rank,
                                                const std::vector<ShardView>& shards, int64_t step,
                                                const std::string& directory, Agreement& agreement,
                                                const SaveOptions& options) {
  const HostFileSystem host;
  const FileSystem& files = options.files == nullptr ? host : *options.files;
  absl::StatusOr<SavedCheckpoint> saved =
      CheckpointWriter(plan, rank, step, directory, options, files).Write(shards, agreement);
  // Nobody writes any more: all ranks have agreed that it failed, or the run has lost one.
  if (!saved.ok() && rank == 0) {
    RemoveTree(UnfinishedPath(directory, step), files).IgnoreError();
  }
  return saved;
}

absl::Status SaveCheckpoint(const Plan& plan, int64_t rank, const std::vector<ShardView>& shards,
                            int64_t step, const std::string& directory, Agreement& agreement,
                            const SaveOptions& options) {
  return WriteCheckpoint(plan, rank, shards, step, directory, agreement, options).status();
}

}  // namespace planc
