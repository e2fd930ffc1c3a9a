#include "runtime/train.h"

#include <cmath>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/control_agreement.h"
#include "runtime/device/host_device.h"
#include "runtime/launch/signals.h"
#include "runtime/launch/step_page.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/replica_check.h"
#include "runtime/step/faults.h"
#include "runtime/step/run_program.h"
#include "runtime/step/schedule.h"
#include "runtime/step/session.h"
#include "runtime/training_data.h"
#include "runtime/training_report.h"
#include "runtime/training_state.h"
#include "runtime/validation.h"
#include "schemas/status.h"

namespace planc {
absl::StatusOr<TrainingEnd> Train(const Plan& plan, const LaunchConfig& launch,
                                  const RunOptions& options) {
  const int64_t end = EndStep(plan, options);

  // 1. Launch: this process is one rank of the job. A signal ends it after a whole step.
  const ScopedStopSignals stop_signals;
  PLANC_ASSIGN_OR_RETURN(TrainingData data, TrainingData::Open(plan, options.base_directory));

  // 2. Process groups: meet the other ranks, which must hold the same plan, and agree on what run
  // it is and where it goes on.
  PLANC_ASSIGN_OR_RETURN(StepPage steps, StepPage::Open(launch.step_page, launch.world_size));
  PLANC_ASSIGN_OR_RETURN(Groups groups, ConnectGroups(plan, launch, GroupOptionsOf(plan, options)));
  ControlAgreement agreement(&groups.control());
  ControlAgreement writers(&groups.background_control(), [&groups] { groups.CancelBackground(); });
  PLANC_ASSIGN_OR_RETURN(const RunStart run, AgreeOnRun(options, &groups, agreement, &data));
  if (run.complete) return TrainingEnd::kCompleted;

  // 3. Partition: this rank's programs, bound to memory, and its share of the training state.
  const std::unique_ptr<Device> device = CreateHostDevice();
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(plan, launch.rank, launch.threads,
                                         groups.instruction_set(), device.get(), &groups));
  PLANC_ASSIGN_OR_RETURN(TrainingReport report,
                         TrainingReport::Open(*session, launch, options, end));
  PLANC_ASSIGN_OR_RETURN(
      const std::unique_ptr<ProgramRunner> runner,
      ProgramRunner::Create(*session, device.get(), {options.stall, report.profile()}));
  const absl::StatusOr<int64_t> prepared =
      PrepareState(*session, runner.get(), options, run, agreement, &data, &report);
  if (absl::IsCancelled(prepared.status())) return report.StoppedEarly(prepared.status());
  PLANC_ASSIGN_OR_RETURN(const int64_t first_step, prepared);
  Checkpointer checkpointer(plan, launch.rank, launch.threads, session->Shards(),
                            CheckpointDirectory(plan, options.base_directory), writers,
                            SaveOptionsOf(options, run, *session, data, report));
  ReplicaCheck replicas(*session, &groups.control(), launch.host);
  Validation validation(*session, runner.get(), data, end);
  PLANC_ASSIGN_OR_RETURN(bool stop, validation.MakeUp(first_step, &report));

  for (int64_t done = first_step + 1; done <= end && !stop; ++done) {
    // 4. Forward, 5. backward, 6. gradient sync and 7. optimizer label the instructions of one
    // program and interleave. It ends early, before any update, when the norm is not finite.
    steps.Publish(launch.rank, done);
    report.StepBegins();
    const ProgramInputs inputs = {done - 1, HyperParametersOf(plan.job, done - 1), data.training()};
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kStep, inputs));
    report.StepEnds();
    if (!std::isfinite(session->Loss())) return NonFiniteError("loss", session->Loss());

    // 8. Metrics, by rank 0, before the checkpoint: a run that resumes does not repeat the step.
    report.CheckpointsEnded(checkpointer.TakeEnded());
    PLANC_ASSIGN_OR_RETURN(const ValidationResult validated, validation.Run(done));
    validation.StopIfLost(report.Write(done, inputs.hyper_parameters.lr, validated));
    stop = validated.stop && (done < end || validated.IsMissing());

    // 9. Checkpoint: masters and moments, between two steps, once all replicas were found the same.
    const bool last = stop || done == end;
    const bool saving = IsDue(plan.job.checkpoint().every_steps(), done, last);
    PLANC_RETURN_IF_ERROR(replicas.CompareIfDue(done, saving));
    if (saving) {
      PLANC_ASSIGN_OR_RETURN(const double stall, checkpointer.Save(done, last));
      report.CheckpointStalled(stall);
    }
  }
  const absl::Status saved = FinishSaves(plan, options, agreement, &report, &checkpointer);
  report.CheckpointsEnded(checkpointer.TakeEnded());
  PLANC_RETURN_IF_ERROR(saved.ok() ? agreement.AllOk(report.StoppedFor(validation.lost())) : saved);
  PLANC_RETURN_IF_ERROR(report.Finish());
  PLANC_RETURN_IF_ERROR(groups.Shutdown());
  return stop ? report.Stopped(groups.control().stop_reason()) : TrainingEnd::kCompleted;
}

}  // namespace planc
