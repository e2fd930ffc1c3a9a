#ifndef PLANC_PLANC_LOAD_PLAN_H_
#define PLANC_PLANC_LOAD_PLAN_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/spec/load_job.h"
#include "schemas/plan.h"
#include "schemas/verify.h"

namespace planc {

// A plan that was proven safe and fits, and where it came from.
struct LoadedPlan {
  Plan plan;
  std::string hash;
  Certificate certificate;
  std::optional<LoadResult> job;  // of a job file; absent when a plan file was read
};

// The plan of `path`, which is a job file (compiled, with the overrides `sets`) or a plan file
// (recognized by its first line; takes no overrides), verified and checked against the memory
// bound. Returns kExitOk, or after writing the reasons to `err` the exit code of the command.
// Warnings go to `err` too. Messages start with `command`, e.g. "planc plan".
int LoadPlan(const std::string& command, const std::string& path,
             const std::vector<std::string>& sets, std::ostream& err, LoadedPlan* loaded);

// The whole file, which must be a regular one. Errors: those of OpenRegularFile; Internal with the
// system's reason when it cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Replaces a regular file at once: writes a temporary file beside it, then renames. Anything else,
// such as /dev/stdout, is written to. Errors: Internal with path and reason (SystemError).
absl::Status WriteFile(const std::string& path, const std::string& bytes);

}  // namespace planc

#endif  // PLANC_PLANC_LOAD_PLAN_H_
