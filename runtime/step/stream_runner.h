#ifndef PLANC_RUNTIME_STEP_STREAM_RUNNER_H_
#define PLANC_RUNTIME_STEP_STREAM_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/device/host_stream.h"
#include "runtime/step/profile.h"
#include "runtime/step/session.h"
#include "runtime/step/step_context.h"
#include "schemas/plan.h"

namespace planc {

// Where a stream is, published for the watchdog. Written by the stream's thread only; the parts are
// consistent with each other whenever the stream has stopped moving.
struct StreamPosition {
  enum class Phase : uint8_t { kIdle, kWaiting, kRunning };

  std::atomic<uint64_t> moves{0};  // grows with everything the stream does
  std::atomic<Phase> phase{Phase::kIdle};
  std::atomic<const PreparedCall*> call{nullptr};
  std::atomic<int32_t> microbatch{-1};
  std::atomic<int32_t> instruction{-1};
};

// Carries out one stream's share of a program. It walks the whole program by itself: its own
// instructions it carries out, the records of other streams it counts, so that at each wait it
// knows how many records of the cell come before it in program order.
class StreamRunner {
 public:
  // `session` and `cells` must outlive the runner.
  StreamRunner(const Session& session, Stream stream, EventCells* cells);

  // Runs this stream's instructions of `program`, in order. The error names call, block and
  // instruction; it is Aborted when a wait was aborted. Allocates nothing on success.
  // `profile`: emptied, then gets this run's instructions; may be null.
  // REQUIRES: `cells` were reset since the last run.
  absl::Status Run(const PreparedProgram& program, const ProgramInputs& inputs,
                   StreamProfile* profile);

  Stream stream() const { return stream_; }
  const StreamPosition& position() const { return position_; }

 private:
  absl::Status RunCall(const PreparedProgram& program, const PreparedCall& call);
  absl::Status RunInstruction(const PreparedBlock& block, int32_t index, const int32_t* slots);
  bool WaitForEvents(const PreparedBlock& block, int32_t index, const int32_t* slots);

  const Session& session_;
  const Stream stream_;
  EventCells* const cells_;
  StreamProfile* profile_ = nullptr;  // of the running program
  std::vector<uint32_t> expected_;    // by cell: records that precede this point of the program
  StepContext context_;
  StreamPosition position_;
};

// "call layer_forward layer 3 microbatch 0, instruction 17: c = matmul(...)" of a position.
std::string PositionText(const Plan& plan, const PreparedCall& call, int microbatch,
                         int instruction);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_STREAM_RUNNER_H_
