#ifndef PLANC_RUNTIME_CHECKPOINT_SAVED_TENSORS_H_
#define PLANC_RUNTIME_CHECKPOINT_SAVED_TENSORS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_boxes.h"

namespace planc {

// Copies the part that two boxes of one tensor share: `from` holds the elements of `from_box`, `to`
// those of `to_box`, both row-major and dense.
void CopyCommon(const Box& from_box, const float* from, const Box& to_box, float* to);

// The tensors of one checkpoint, checked before they are used.
class SavedTensors {
 public:
  // `manifest` is the checkpoint's and must outlive this object.
  SavedTensors(std::string checkpoint, const Manifest& manifest)
      : checkpoint_(std::move(checkpoint)), manifest_(manifest) {}

  // Copies the elements of `box` of one parameter's state, row-major, to `out`, from whichever
  // saved pieces cover them.
  // REQUIRES: the manifest has the parameter, and `box` lies in its shape.
  // Errors: DataLoss naming file and tensor when bytes differ from what was written, or elements
  // are missing or there twice; OutOfRange naming tensor and element for one that is not finite.
  absl::Status Read(const std::string& parameter, StateKind kind, const Box& box, float* out);

  // The values of one saved tensor, after its checksum was compared and every value was found to be
  // finite; each tensor is examined once. Errors: as Read.
  absl::StatusOr<const float*> Tensor(const SavedTensor& tensor);
  // A shard file, after its size and header were compared with the manifest.
  absl::StatusOr<const SafetensorsFile*> File(const std::string& name);

 private:
  const std::string checkpoint_;
  const Manifest& manifest_;
  std::map<std::string, SafetensorsFile> files_;           // opened so far
  std::set<std::pair<std::string, std::string>> checked_;  // file, key
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_SAVED_TENSORS_H_
