#include "runtime/checkpoint/resume_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/shard_boxes.h"

namespace planc {
namespace {

// How the parameters of the checkpoint differ from those of the plan's model, one sentence each.
std::vector<std::string> ShapeDifferences(const Plan& plan, const Manifest& manifest) {
  std::vector<std::string> differences;
  std::set<std::string> expected;
  ForEachTensor(plan, [&](const std::string& name, const Parameter& parameter) {
    expected.insert(name);
    const auto saved = manifest.parameters.find(name);
    if (saved == manifest.parameters.end()) {
      differences.push_back(absl::StrCat("tensor ", name, " is not in the checkpoint"));
    } else if (saved->second.shape != parameter.shape) {
      differences.push_back(absl::StrCat("tensor ", name, " is ", ShapeText(saved->second.shape),
                                         " in the checkpoint, ", ShapeText(parameter.shape),
                                         " in the job"));
    }
  });
  for (const auto& [name, saved] : manifest.parameters) {
    if (expected.count(name) == 0) {
      differences.push_back(absl::StrCat("tensor ", name, " is not in the job"));
    }
  }
  return differences;
}

// How the bits of the instruction sets differ, in a job that computes in bf16: what is computed in
// fp32 has the same bits on all of them.
std::string BitsDifference(const Plan& plan, const Manifest& manifest, host::InstructionSet now) {
  const std::string bits = host::InstructionSetBits(now);
  if (plan.job.precision().compute() != proto::BF16 || manifest.bits.empty() ||
      manifest.bits == bits) {
    return "";
  }
  return absl::StrCat("saved on instruction set ", manifest.instruction_set, ", goes on on ",
                      host::InstructionSetName(now), ", which sums bf16 in another order: losses ",
                      "are the same to rounding, not bit-identical to a run that never stopped");
}

// The saved tensors of one parameter's state, findable by the rows that they hold.
class TensorIndex {
 public:
  explicit TensorIndex(const std::vector<SavedTensor>& tensors) {
    for (const SavedTensor& tensor : tensors) {
      tensors_.push_back(&tensor);
      most_rows_ = std::max(most_rows_, tensor.box.shape[0]);
    }
    std::sort(tensors_.begin(), tensors_.end(), [](const SavedTensor* a, const SavedTensor* b) {
      return a->box.offset[0] < b->box.offset[0];
    });
  }

  // Calls `visit` for each tensor that shares elements with `box`.
  template <typename Visit>
  void ForEachIn(const Box& box, Visit visit) const {
    auto at = std::lower_bound(
        tensors_.begin(), tensors_.end(), box.offset[0] - most_rows_,
        [](const SavedTensor* tensor, int64_t row) { return tensor->box.offset[0] <= row; });
    for (; at != tensors_.end() && (*at)->box.offset[0] < box.offset[0] + box.shape[0]; ++at) {
      if (BoxElements(Intersect((*at)->box, box)) > 0) visit(**at);
    }
  }

 private:
  std::vector<const SavedTensor*> tensors_;  // by first row
  int64_t most_rows_ = 0;                    // of one tensor
};

// Counts the bytes that ranks read.
class LoadMeter {
 public:
  LoadMeter(const Plan& plan, const Manifest& manifest) : plan_(plan) {
    for (const auto& [name, file] : manifest.files) header_bytes_[name] = file.bytes;
    for (const auto& [name, parameter] : manifest.parameters) {
      for (const std::vector<SavedTensor>& tensors : parameter.state) {
        indices_[name].emplace_back(tensors);
        for (const SavedTensor& tensor : tensors) {
          header_bytes_[tensor.file] -= BytesOf(tensor);
          largest_tensor_ = std::max(largest_tensor_, BytesOf(tensor));
        }
      }
    }
  }

  int64_t LargestTensor() const { return largest_tensor_; }

  int64_t Measure(int64_t rank) {
    const Coordinates at = plan_.mesh.CoordinatesOf(rank);
    const RankClass& rank_class = plan_.classes[at[static_cast<int>(Axis::kPp)]];
    tensors_.clear();
    files_.clear();
    bytes_ = 0;
    for (size_t u = 0; u < plan_.units.size(); ++u) {
      const Unit& unit = plan_.units[u];
      if (rank_class.pool_slots[plan_.buffers[unit.master].pool] == 0) continue;
      const int64_t count = unit.elements / plan_.mesh[Axis::kDpShard];
      const std::vector<UnitBox> pieces =
          ShardBoxes(plan_, static_cast<int>(u), at[static_cast<int>(Axis::kTp)],
                     at[static_cast<int>(Axis::kDpShard)] * count, count);
      const std::vector<int32_t> layers =
          unit.per_layer ? rank_class.layers : std::vector<int32_t>{-1};
      for (const int32_t layer : layers) {
        for (const UnitBox& piece : pieces) {
          AddPiece(ParameterName(plan_.params[piece.parameter].name, layer), piece.box);
        }
      }
    }
    return bytes_;
  }

 private:
  static int64_t BytesOf(const SavedTensor& tensor) {
    return BoxElements(tensor.box) * static_cast<int64_t>(sizeof(float));
  }

  void AddPiece(const std::string& name, const Box& box) {
    for (const TensorIndex& index : indices_.at(name)) {
      index.ForEachIn(box, [&](const SavedTensor& tensor) {
        if (!tensors_.insert(&tensor).second) return;
        bytes_ += BytesOf(tensor);
        if (files_.insert(tensor.file).second) bytes_ += header_bytes_[tensor.file];
      });
    }
  }

  const Plan& plan_;
  std::map<std::string, std::vector<TensorIndex>> indices_;  // of each parameter: by StateKind
  std::map<std::string, int64_t> header_bytes_;              // of each file: what is not a tensor
  std::set<const SavedTensor*> tensors_;                     // read by the rank
  std::set<std::string> files_;                              // opened by the rank
  int64_t bytes_ = 0;
  int64_t largest_tensor_ = 0;
};

}  // namespace

bool ResumeCheck::SameLayout() const {
  return std::none_of(changes.begin(), changes.end(), [](const JobChange& change) {
    return change.verdict == ChangeVerdict::kLayout;
  });
}

bool ResumeCheck::SameBits() const {
  const bool same_data = data == DataChange::kUnknown || data == DataChange::kSame;
  const bool same_training =
      std::all_of(changes.begin(), changes.end(), [&](const JobChange& change) {
        // Files may be elsewhere and be the same; their number and validation change no step.
        return change.key == "run.steps" || change.key == "data.validation" ||
               (change.key == "data.train" && data == DataChange::kSame);
      });
  return same_data && same_training && bits.empty();
}

ResumeCheck CompareWithCheckpoint(const Plan& plan, const Manifest& manifest,
                                  std::optional<host::InstructionSet> now) {
  ResumeCheck check;
  check.changes = JobChanges(manifest.job, plan.job, manifest.step);
  check.shapes = ShapeDifferences(plan, manifest);
  if (now.has_value()) check.bits = BitsDifference(plan, manifest, *now);
  check.rates = RateChange(manifest.job, plan.job, manifest.step);
  for (const JobChange& change : check.changes) {
    if (change.key != "lr_schedule.decay_steps" || change.verdict != ChangeVerdict::kRefused) {
      continue;
    }
    check.way =
        absl::StrCat("`lr_schedule.decay_steps: ", change.saved, "` keeps the rates as they were");
  }
  return check;
}

absl::Status RefusalOf(const ResumeCheck& check, const std::string& checkpoint) {
  std::vector<std::string> lines;
  std::vector<std::string> keys;
  for (const JobChange& change : check.changes) {
    if (change.verdict != ChangeVerdict::kRefused) continue;
    keys.push_back(change.key);
    lines.push_back(ChangeText(change));
  }
  if (!lines.empty() && !check.rates.empty()) lines.push_back(check.rates);
  lines.insert(lines.end(), check.shapes.begin(), check.shapes.end());
  if (lines.empty()) return absl::OkStatus();
  const std::string headline =
      check.shapes.empty() ? "was saved with other settings" : "is of another model";
  const std::string advice =
      check.shapes.empty()
          ? absl::StrCat(
                "put the old values back, or allow the change with "
                "`checkpoint.allow_changes: [",
                absl::StrJoin(keys, ", "), "]`", check.way.empty() ? "" : "; ", check.way)
          : "tensors of other names or shapes cannot be loaded";
  return absl::FailedPreconditionError(absl::StrCat(checkpoint, ": ", headline, ":\n  ",
                                                    absl::StrJoin(lines, "\n  "), "\n  ", advice));
}

std::vector<std::string> NoticesOf(const ResumeCheck& check, const Plan& plan,
                                   const Manifest& manifest) {
  std::vector<std::string> notices;
  std::vector<std::string> layout;
  bool other_mesh = false;
  for (const JobChange& change : check.changes) {
    if (change.verdict != ChangeVerdict::kLayout) {
      const bool allowed = change.verdict == ChangeVerdict::kAllowed;
      notices.push_back(absl::StrCat(ChangeText(change), allowed ? " (allowed)" : ""));
    } else if (change.key.rfind("mesh.", 0) == 0) {
      other_mesh = true;  // the meshes are named as a whole
    } else {
      layout.push_back(absl::StrCat(change.key, " was ", change.saved, ", is ", change.now));
    }
  }
  if (!check.rates.empty()) notices.push_back(check.rates);
  if (!check.bits.empty()) notices.push_back(check.bits);
  if (check.SameLayout()) return notices;
  if (other_mesh) {
    layout.insert(layout.begin(), absl::StrCat("saved on ", MeshSizesText(manifest.job.mesh()),
                                               ", loads on ", MeshSizesText(plan.job.mesh())));
  }
  notices.push_back(absl::StrCat(absl::StrJoin(layout, "; "), ": losses are the same to rounding"));
  return notices;
}

LoadSize LoadSizeOf(const Plan& plan, const Manifest& manifest) {
  LoadSize size;
  for (const auto& [name, file] : manifest.files) size.saved_bytes += file.bytes;
  LoadMeter meter(plan, manifest);
  size.tensor_bytes = meter.LargestTensor();
  // Replicas read the same, so only the first of them is measured.
  const int64_t replicas = plan.mesh[Axis::kDpReplicate] * plan.mesh[Axis::kCp];
  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    const Coordinates at = plan.mesh.CoordinatesOf(rank);
    const bool first =
        at[static_cast<int>(Axis::kDpReplicate)] == 0 && at[static_cast<int>(Axis::kCp)] == 0;
    if (!first) continue;
    const int64_t bytes = meter.Measure(rank);
    size.all_ranks_bytes += bytes * replicas;
    if (bytes <= size.largest_bytes) continue;
    size.largest_bytes = bytes;
    size.largest_rank = rank;
  }
  return size;
}

}  // namespace planc
