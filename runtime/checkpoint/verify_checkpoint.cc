#include "runtime/checkpoint/verify_checkpoint.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// A sentence about pieces that do not cover `shape` exactly once; empty when they do.
std::string CoverageDefect(const std::vector<int64_t>& shape,
                           const std::vector<SavedTensor>& pieces) {
  const Box whole{std::vector<int64_t>(shape.size(), 0), shape};
  int64_t covered = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (Intersect(pieces[i].box, whole) != pieces[i].box) {
      return absl::StrCat("tensor ", pieces[i].key, " reaches beyond the parameter");
    }
    for (size_t j = 0; j < i; ++j) {
      if (BoxElements(Intersect(pieces[i].box, pieces[j].box)) == 0) continue;
      return absl::StrCat("tensors ", pieces[j].key, " in ", pieces[j].file, " and ", pieces[i].key,
                          " in ", pieces[i].file, " overlap");
    }
    covered += BoxElements(pieces[i].box);
  }
  if (covered == BoxElements(whole)) return "";
  return absl::StrCat(BoxElements(whole) - covered, " of ", Counted(BoxElements(whole), "element"),
                      " are missing");
}

// What lies in the folder and is not part of the checkpoint.
void FindForeignFiles(const std::string& checkpoint, const Manifest& manifest,
                      std::vector<std::string>* defects) {
  std::error_code error;
  std::filesystem::directory_iterator at(checkpoint, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name == kManifestName || manifest.files.count(name) != 0) continue;
    defects->push_back(absl::StrCat(checkpoint, "/", name, ": does not belong to the checkpoint"));
  }
}

}  // namespace

absl::StatusOr<CheckpointReport> VerifyCheckpoint(const std::string& checkpoint) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  SavedTensors saved(checkpoint, manifest);
  CheckpointReport report;
  report.step = manifest.step;
  std::set<std::pair<std::string, std::string>> listed;  // file, key
  for (const auto& [name, parameter] : manifest.parameters) {
    ++report.parameters;
    report.elements += BoxElements(Box{{}, parameter.shape});
    for (const StateKind kind : kAllStateKinds) {
      const std::vector<SavedTensor>& pieces = parameter.state[static_cast<int>(kind)];
      const std::string defect = CoverageDefect(parameter.shape, pieces);
      if (!defect.empty()) {
        report.defects.push_back(absl::StrCat(checkpoint, "/", kManifestName, ": ",
                                              StateKindName(kind), " of ", name, ": ", defect));
      }
      for (const SavedTensor& piece : pieces) {
        ++report.tensors;
        listed.insert({piece.file, piece.key});
        const absl::Status status = saved.Tensor(piece).status();
        if (!status.ok() && !IsUnfit(status)) return status;
        if (!status.ok()) report.defects.push_back(std::string(status.message()));
      }
    }
  }
  for (const auto& [name, file] : manifest.files) {
    ++report.files;
    report.bytes += file.bytes;
    const absl::StatusOr<const SafetensorsFile*> opened = saved.File(name);
    if (!opened.ok() && !IsDamage(opened.status())) return opened.status();
    if (!opened.ok()) {
      report.defects.push_back(std::string(opened.status().message()));
      continue;
    }
    for (const auto& [key, tensor] : (*opened)->tensors()) {
      if (listed.count({name, key}) != 0) continue;
      report.defects.push_back(
          absl::StrCat(checkpoint, "/", name, ": tensor ", key, " is not in the manifest"));
    }
  }
  FindForeignFiles(checkpoint, manifest, &report.defects);
  return report;
}

}  // namespace planc
