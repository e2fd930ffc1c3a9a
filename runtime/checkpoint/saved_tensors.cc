#include "runtime/checkpoint/saved_tensors.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/tensor_exam.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

std::string BoxText(const Box& box) {
  return absl::StrCat("[", absl::StrJoin(box.shape, ", "), "] at [",
                      absl::StrJoin(box.offset, ", "), "]");
}

// Position of the element `at` of the whole tensor in a dense box.
int64_t PlaceIn(const Box& box, const std::vector<int64_t>& at) {
  int64_t place = 0;
  for (size_t d = 0; d < at.size(); ++d) place = place * box.shape[d] + at[d] - box.offset[d];
  return place;
}

}  // namespace

void CopyCommon(const Box& from_box, const float* from, const Box& to_box, float* to) {
  const Box common = Intersect(from_box, to_box);
  if (BoxElements(common) == 0) return;
  const int64_t run = common.shape.back();
  const int64_t runs = BoxElements(common) / run;
  std::vector<int64_t> at = common.offset;  // first element of the current run
  for (int64_t r = 0; r < runs; ++r) {
    std::memcpy(to + PlaceIn(to_box, at), from + PlaceIn(from_box, at),
                static_cast<size_t>(run) * sizeof(float));
    for (size_t d = at.size() - 1; d-- > 0;) {
      if (++at[d] < common.offset[d] + common.shape[d]) break;
      at[d] = common.offset[d];
    }
  }
}

absl::Status SavedTensors::Read(const std::string& parameter, StateKind kind, const Box& box,
                                float* out) {
  const SavedParameter& saved = manifest_.parameters.at(parameter);
  int64_t found = 0;
  std::vector<Box> sources;
  for (const SavedTensor& tensor : saved.state[static_cast<int>(kind)]) {
    const Box common = Intersect(tensor.box, box);
    const int64_t elements = BoxElements(common);
    if (elements == 0) continue;
    for (const Box& other : sources) {
      if (BoxElements(Intersect(other, common)) == 0) continue;
      return absl::DataLossError(absl::StrCat(checkpoint_, "/", tensor.file, ": tensor ",
                                              tensor.key, " is saved in another place as well"));
    }
    PLANC_ASSIGN_OR_RETURN(const float* const values, Tensor(tensor));
    CopyCommon(tensor.box, values, box, out);
    const SafetensorsFile& file = files_.at(tensor.file);
    file.ReleaseMemory(file.tensors().at(tensor.key));
    sources.push_back(common);
    found += elements;
  }
  if (found == BoxElements(box)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      checkpoint_, "/", kManifestName, ": ", StateKindName(kind), " of ", parameter, ": ",
      Counted(BoxElements(box) - found, "element"), " of the part ", BoxText(box), " are missing"));
}

absl::StatusOr<const float*> SavedTensors::Tensor(const SavedTensor& tensor) {
  PLANC_ASSIGN_OR_RETURN(const SafetensorsFile* const file, File(tensor.file));
  const auto defect = [&](const std::string& what) {
    return absl::DataLossError(
        absl::StrCat(checkpoint_, "/", tensor.file, ": tensor ", tensor.key, " ", what));
  };
  const auto found = file->tensors().find(tensor.key);
  if (found == file->tensors().end()) return defect("is missing");
  const SafetensorsFile::Tensor& stored = found->second;
  if (stored.shape != tensor.box.shape) return defect("has another shape than the manifest says");
  const absl::Status fetched = file->Fetch(stored);
  if (!fetched.ok()) {
    const absl::Status why = FetchFailure(absl::StrCat(checkpoint_, "/", tensor.file), fetched);
    return IsDamage(why) ? defect(std::string(fetched.message())) : why;
  }
  if (checked_.count({tensor.file, tensor.key}) == 0) {
    const float* const values = reinterpret_cast<const float*>(stored.data);
    TensorExam exam;
    exam.AddAll(values, BoxElements(tensor.box));
    if (exam.Checksum() != tensor.checksum) {
      return defect("does not have its checksum: it is damaged");
    }
    if (exam.first_non_finite() >= 0) {
      return NonFiniteElement(absl::StrCat(checkpoint_, "/", tensor.file, ": tensor ", tensor.key),
                              tensor.box.shape, tensor.box.offset, exam.first_non_finite(),
                              exam.non_finite_value());
    }
    checked_.insert({tensor.file, tensor.key});
  }
  return reinterpret_cast<const float*>(stored.data);
}

absl::StatusOr<const SafetensorsFile*> SavedTensors::File(const std::string& name) {
  const auto opened = files_.find(name);
  if (opened != files_.end()) return &opened->second;
  const std::string path = absl::StrCat(checkpoint_, "/", name);
  const auto listed = manifest_.files.find(name);
  if (listed == manifest_.files.end()) {
    return absl::DataLossError(absl::StrCat(path, ": is not among the manifest's files"));
  }
  PLANC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  if (file.bytes() != listed->second.bytes) {
    return absl::DataLossError(absl::StrCat(path, ": has ", Counted(file.bytes(), "byte"),
                                            ", not the ", listed->second.bytes,
                                            " that were written"));
  }
  if (file.header_checksum() != listed->second.header_checksum) {
    return absl::DataLossError(
        absl::StrCat(path, ": the header does not have its checksum: it is damaged"));
  }
  return &files_.emplace(name, std::move(file)).first->second;
}

}  // namespace planc
