#ifndef PLANC_RUNTIME_TRAINING_STATE_H_
#define PLANC_RUNTIME_TRAINING_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/save.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/run_start.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"
#include "runtime/training_data.h"
#include "runtime/training_report.h"
#include "schemas/plan.h"

namespace planc {

// Where the job's checkpoints are; `base` is what a relative path starts from.
std::string CheckpointDirectory(const Plan& plan, const std::string& base);

// Steps done when the run ends.
int64_t EndStep(const Plan& plan, const RunOptions& options);

GroupOptions GroupOptionsOf(const Plan& plan, const RunOptions& options);

// What run this is, on all ranks: options.run, else what options.begin_run says on rank 0. Shuts
// the groups down when it is complete. Errors, on all ranks: those of begin_run, of a lost rank,
// and of a rank that finds other data.
absl::StatusOr<RunStart> AgreeOnRun(const RunOptions& options, Groups* groups, Agreement& agreement,
                                    TrainingData* data);

// Gives masters and moments their values, initial ones or those of the checkpoint that
// `run` goes on from, and publishes the compute weights; tries out whether checkpoints can be
// written. Returns the number of optimizer steps done. Errors: as ResumeTraining, ProbeDirectory
// and ProgramRunner::Run.
absl::StatusOr<int64_t> PrepareState(const Session& session, ProgramRunner* runner,
                                     const RunOptions& options, const RunStart& run,
                                     Agreement& agreement, TrainingData* data,
                                     TrainingReport* report);

// How the run saves. A save fails when another run has taken the directories over. The references
// must outlive what is returned.
SaveOptions SaveOptionsOf(const RunOptions& options, const RunStart& run, const Session& session,
                          const TrainingData& data, const TrainingReport& report);

// Waits until nothing is being saved; a last save that the disk refuses is repeated, as FinishSaves
// of runtime/checkpoint/last_save.h says. Errors: of the last save.
absl::Status FinishSaves(const Plan& plan, const RunOptions& options, Agreement& agreement,
                         TrainingReport* report, Checkpointer* checkpointer);

// Whether something that happens every `every` steps, and at the end, happens after `done` steps;
// 0 stands for at the end only.
bool IsDue(int64_t every, int64_t done, bool at_end);

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAINING_STATE_H_
