#include "runtime/train.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/control_agreement.h"
#include "runtime/checkpoint/save.h"
#include "runtime/device/host_device.h"
#include "runtime/launch/signals.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/step/faults.h"
#include "runtime/step/run_program.h"
#include "runtime/step/schedule.h"
#include "runtime/step/session.h"
#include "runtime/training_data.h"
#include "runtime/training_report.h"
#include "runtime/training_state.h"
#include "schemas/status.h"

namespace planc {

absl::Status Train(const Plan& plan, const LaunchConfig& launch, const RunOptions& options) {
  const proto::Job& job = plan.job;
  const int64_t end = std::min(job.run().steps(), options.stop_after.value_or(job.run().steps()));

  // 1. Launch: this process is one rank of the job. A signal ends it after a whole step.
  const ScopedStopSignals stop_signals;
  PLANC_ASSIGN_OR_RETURN(TrainingData data, TrainingData::Open(plan, options.base_directory));

  // 2. Process groups: meet the other ranks, which must hold the same plan.
  PLANC_ASSIGN_OR_RETURN(Groups groups, ConnectGroups(plan, launch));
  ControlAgreement agreement(&groups.control());

  // 3. Partition: this rank's programs, bound to memory, and its share of the training state.
  const std::unique_ptr<Device> device = CreateHostDevice();
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(plan, launch.rank, launch.threads, device.get(), &groups));
  PLANC_ASSIGN_OR_RETURN(TrainingReport report,
                         TrainingReport::Open(*session, launch, options, end));
  PLANC_ASSIGN_OR_RETURN(
      const std::unique_ptr<ProgramRunner> runner,
      ProgramRunner::Create(*session, device.get(), {options.stall_deadline, report.profile()}));
  PLANC_ASSIGN_OR_RETURN(
      const int64_t first_step,
      PrepareState(*session, runner.get(), options.base_directory, agreement, &report));

  bool stop = first_step >= end;
  for (int64_t step = first_step; !stop; ++step) {
    // 4. Forward, 5. backward, 6. gradient sync and 7. optimizer are labels of the instructions of
    // one program: with pipelining and overlapped communication they interleave. It ends early,
    // before anything is updated, when the gradient norm is not finite.
    report.StepBegins();
    const ProgramInputs inputs = {step, HyperParametersOf(job, step), data.training()};
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kStep, inputs));
    report.StepEnds();
    if (!std::isfinite(session->Loss())) return NonFiniteError("loss", session->Loss());
    PLANC_ASSIGN_OR_RETURN(stop,
                           groups.control().ShouldStop(step, ScopedStopSignals::Received() != 0));
    stop = stop || step + 1 == end;

    // 8. Checkpoint: masters and moments, between two steps.
    if (IsDue(job.checkpoint().every_steps(), step + 1, stop)) {
      PLANC_RETURN_IF_ERROR(SaveCheckpoint(plan, launch.rank, session->Shards(), step + 1,
                                           CheckpointDirectory(plan, options.base_directory),
                                           agreement));
    }

    // 9. Metrics: losses that every rank has, written by rank 0.
    std::optional<double> validation_loss;
    if (data.validation() != nullptr && IsDue(job.run().eval_every_steps(), step + 1, stop)) {
      PLANC_ASSIGN_OR_RETURN(validation_loss, Validate(*session, runner.get(), data.validation()));
    }
    PLANC_RETURN_IF_ERROR(report.Write(step + 1, inputs.hyper_parameters.lr, validation_loss));
  }
  PLANC_RETURN_IF_ERROR(report.Finish());
  return groups.Shutdown();
}

}  // namespace planc
