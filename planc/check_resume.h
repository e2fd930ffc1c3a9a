#ifndef PLANC_PLANC_CHECK_RESUME_H_
#define PLANC_PLANC_CHECK_RESUME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/diagnostics/diagnostic.h"
#include "planc/load_plan.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume_check.h"

namespace planc {

// How a run would go on from a checkpoint, as far as the manifest and the headers of the shard
// files tell: the bytes of the tensors are not read.
struct ResumeOutlook {
  std::string checkpoint;                // the folder
  int64_t candidates = 0;                // complete checkpoints there were to choose from
  bool named = false;                    // the path named this checkpoint and no directory
  bool own = false;                      // `auto`: the run in run.directory goes on
  int64_t step = 0;                      // steps done
  int64_t steps = 0;                     // run.steps
  ResumeCheck check;                     // how the jobs differ
  std::optional<DataPosition> position;  // in the data; nothing when these cannot be opened
  std::vector<std::string> notices;
  LoadSize size;               // bytes read
  int64_t arena_bytes = 0;     // of the fullest rank, all of which exist while loading
  int64_t manifest_bytes = 0;  // heap that reading the manifest takes at most
};

// Reads the manifest of a checkpoint and the headers of all its files. `named`: it was not chosen
// for its name, which may be any. Errors: as ReadManifest and SavedTensors::File.
absl::StatusOr<Manifest> InspectCheckpoint(const std::string& checkpoint, bool named);

// Finds out from which checkpoint the job of `loaded` would resume: `path` is a checkpoint, a
// directory of checkpoints, or `auto` for checkpoint.directory; `job_path` is the job or plan file,
// `base` what its relative paths start from (empty: its folder). `path` starts from the current
// directory. Adds PL0501, PL0502 and PL0503 to `list`; returns nothing when no resume is possible.
std::optional<ResumeOutlook> CheckResume(const std::string& job_path, const LoadedPlan& loaded,
                                         const std::string& path, DiagnosticList* list,
                                         const std::string& base = "");

// For people, and as a JSON object.
std::string OutlookText(const ResumeOutlook& outlook);
std::string OutlookJson(const ResumeOutlook& outlook);

}  // namespace planc

#endif  // PLANC_PLANC_CHECK_RESUME_H_
