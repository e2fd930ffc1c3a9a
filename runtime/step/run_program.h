#ifndef PLANC_RUNTIME_STEP_RUN_PROGRAM_H_
#define PLANC_RUNTIME_STEP_RUN_PROGRAM_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/abort_signal.h"
#include "runtime/device/device.h"
#include "runtime/device/host_stream.h"
#include "runtime/step/profile.h"
#include "runtime/step/session.h"
#include "runtime/step/step_context.h"
#include "runtime/step/stream_runner.h"
#include "runtime/step/watchdog.h"
#include "schemas/plan.h"

namespace planc {

struct RunnerOptions {
  // When the watchdog ends the run.
  StallRule stall;
  // Where the instructions of the last step program are timed; null: they are not.
  RankProfile* profile = nullptr;
};

// Carries out the programs of a session: the compute stream on the calling thread, every other
// stream in use on a thread of its own that sleeps between programs.
class ProgramRunner {
 public:
  // `session` and `device` must outlive the runner.
  static absl::StatusOr<std::unique_ptr<ProgramRunner>> Create(const Session& session,
                                                               Device* device,
                                                               const RunnerOptions& options);
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  // Runs one program to its end; all streams have drained when it returns. The first error of any
  // stream aborts all streams and process groups, and is returned with program and position; the
  // runner is then of no further use and returns that error again. Allocates nothing on success,
  // but for what Gloo does with messages between machines.
  absl::Status Run(ProgramKind kind, const ProgramInputs& inputs);

 private:
  ProgramRunner(const Session& session, const RunnerOptions& options);

  absl::Status CreateStreams(Device* device);
  // Runs `stream` of the current program and reports its error, if any.
  void RunStream(int stream);
  void Fail(const absl::Status& error);

  const Session& session_;
  RankProfile* const profile_;
  AbortSignal abort_;
  int group_subscription_ = 0;
  EventCells cells_;
  std::array<std::unique_ptr<StreamRunner>, kStreamCount> runners_;
  std::unique_ptr<Watchdog> watchdog_;

  // Of the running program; written while the streams are idle.
  const PreparedProgram* program_ = nullptr;
  const ProgramInputs* inputs_ = nullptr;

  // Last, so that the threads end before what they use.
  std::array<std::unique_ptr<DeviceStream>, kStreamCount> streams_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_RUN_PROGRAM_H_
