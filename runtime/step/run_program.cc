#include "runtime/step/run_program.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int kComputeStream = static_cast<int>(Stream::kCompute);

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramRunner>> ProgramRunner::Create(const Session& session,
                                                                     Device* device,
                                                                     const RunnerOptions& options) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(session, options));
  PLANC_RETURN_IF_ERROR(runner->CreateStreams(device));
  return runner;
}

ProgramRunner::ProgramRunner(const Session& session, const RunnerOptions& options)
    : session_(session), profile_(options.profile), cells_(session.event_cells(), &abort_) {
  std::vector<const StreamRunner*> watched;
  for (int stream = 0; stream < kStreamCount; ++stream) {
    runners_[stream] =
        std::make_unique<StreamRunner>(session, static_cast<Stream>(stream), &cells_);
    watched.push_back(runners_[stream].get());
  }
  watchdog_ = std::make_unique<Watchdog>(session, std::move(watched), options.stall,
                                         [this](const absl::Status& stall) { Fail(stall); });
  group_subscription_ = abort_.Subscribe([this](const absl::Status& reason) {
    // A value that is not finite stops every rank at the same instruction, so no peer waits for
    // this one; closing the groups could take the same value away from a rank that is behind.
    if (absl::IsOutOfRange(reason) || session_.groups() == nullptr) return;
    session_.groups()->Abort(std::string(reason.message()));
  });
}

ProgramRunner::~ProgramRunner() {
  watchdog_.reset();
  abort_.Unsubscribe(group_subscription_);
}

absl::Status ProgramRunner::CreateStreams(Device* device) {
  for (int stream = 0; stream < kStreamCount; ++stream) {
    if (stream == kComputeStream) continue;
    bool used = false;
    for (int kind = 0; kind < kProgramCount; ++kind) {
      used |= session_.program(static_cast<ProgramKind>(kind)).uses_stream[stream];
    }
    if (!used) continue;
    PLANC_ASSIGN_OR_RETURN(streams_[stream],
                           device->CreateStream(StreamName(static_cast<Stream>(stream)),
                                                [this, stream] { RunStream(stream); }));
  }
  return absl::OkStatus();
}

void ProgramRunner::RunStream(int stream) {
  const bool timed = profile_ != nullptr && program_ == &session_.program(ProgramKind::kStep);
  StreamProfile* const profile = timed ? profile_->streams[stream].get() : nullptr;
  const absl::Status done = runners_[stream]->Run(*program_, *inputs_, profile);
  if (!done.ok()) Fail(done);
}

// Only the first failure counts: the later ones are its consequences.
void ProgramRunner::Fail(const absl::Status& error) { abort_.Abort(error); }

absl::Status ProgramRunner::Run(ProgramKind kind, const ProgramInputs& inputs) {
  if (abort_.aborted()) return abort_.status();
  program_ = &session_.program(kind);
  inputs_ = &inputs;
  cells_.Reset();
  watchdog_->Arm();
  for (int stream = 0; stream < kStreamCount; ++stream) {
    if (stream != kComputeStream && program_->uses_stream[stream]) streams_[stream]->Start();
  }
  if (program_->uses_stream[kComputeStream]) RunStream(kComputeStream);
  for (const std::unique_ptr<DeviceStream>& stream : streams_) {
    if (stream != nullptr) stream->Wait();
  }
  watchdog_->Disarm(kind == ProgramKind::kStep);
  if (!abort_.aborted()) return absl::OkStatus();
  return WithContext(abort_.status(), absl::StrCat("program ", ProgramName(kind)));
}

}  // namespace planc
