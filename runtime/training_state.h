#ifndef PLANC_RUNTIME_TRAINING_STATE_H_
#define PLANC_RUNTIME_TRAINING_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"
#include "runtime/training_report.h"
#include "schemas/plan.h"

namespace planc {

// Where the job's checkpoints are; `base` is what a relative path starts from.
std::string CheckpointDirectory(const Plan& plan, const std::string& base);

// Gives masters and moments their values, initial ones or those of the checkpoint that
// checkpoint.resume or options.resume_from asks for, and publishes the compute weights. Returns the
// number of optimizer steps done. Errors: as ResumeTraining and ProgramRunner::Run.
absl::StatusOr<int64_t> PrepareState(const Session& session, ProgramRunner* runner,
                                     const RunOptions& options, Agreement& agreement,
                                     TrainingReport* report);

// Whether something that happens every `every` steps, and at the end, happens after `done` steps;
// 0 stands for at the end only.
bool IsDue(int64_t every, int64_t done, bool at_end);

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAINING_STATE_H_
