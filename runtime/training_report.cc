#include "runtime/training_report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/data/mapped_file.h"
#include "runtime/device/host_device.h"
#include "runtime/launch/terminal.h"
#include "runtime/metrics/loss_curve.h"
#include "runtime/metrics/memory_table.h"
#include "runtime/metrics/step_metrics.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/step/profile_table.h"
#include "runtime/step/profile_trace.h"
#include "runtime/training_state.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr ProgramKind kStep = ProgramKind::kStep;

// Instructions of the step program on its busiest stream.
int64_t InstructionsPerStream(const Session& session) {
  const PreparedProgram& program = session.program(kStep);
  std::array<int64_t, kStreamCount> counts{};
  for (const PreparedRepeat& repeat : program.repeats) {
    for (int32_t c = 0; c < repeat.call_count; ++c) {
      const int block = program.calls[repeat.first_call + c].block;
      for (const Instruction& instruction : session.plan().blocks[block].instructions) {
        counts[static_cast<int>(instruction.stream)] += repeat.count;
      }
    }
  }
  return std::max<int64_t>(1, *std::max_element(counts.begin(), counts.end()));
}

double SecondsSince1970() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

// "5 checkpoints of 60.1 MiB: ..."
std::string CheckpointLine(const CheckpointTotals& totals, double step_seconds) {
  const double begun = static_cast<double>(std::max<int64_t>(totals.begun, 1));
  const double stall = totals.stall_seconds / begun;
  std::string line =
      absl::StrFormat("%d checkpoints: stall %.3g ms each", totals.begun, 1e3 * stall);
  if (step_seconds > 0)
    absl::StrAppendFormat(&line, " (%.1f%% of a step)", 100 * stall / step_seconds);
  if (totals.complete > 0) {
    const double complete = static_cast<double>(totals.complete);
    const double mebibytes = static_cast<double>(totals.bytes) / (1 << 20);
    absl::StrAppendFormat(&line, ", %.3g MiB each, written in %.3g s (%.4g MiB/s)",
                          mebibytes / complete, totals.write_seconds / complete,
                          mebibytes / totals.write_seconds);
  }
  if (totals.failed > 0) absl::StrAppend(&line, ", ", totals.failed, " failed");
  return line;
}

bool HasBf16(const Plan& plan) {
  return std::any_of(plan.buffers.begin(), plan.buffers.end(),
                     [](const Buffer& buffer) { return buffer.dtype == DType::kBF16; });
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return SystemError(path + ": cannot write", errno);
  return absl::OkStatus();
}

}  // namespace

double ModelFlopsPerStep(const Plan& plan) {
  const double ranks_per_stage = static_cast<double>(plan.mesh.WorldSize() / plan.mesh[Axis::kPp]);
  double flops = 0;
  for (const RankClass& rank_class : plan.classes) {
    for (const Repeat& repeat : rank_class.programs[static_cast<int>(kStep)].steps) {
      for (const Call& call : repeat.calls) {
        for (const Instruction& instruction : plan.blocks[call.block].instructions) {
          if (instruction.label == Label::kRecompute) continue;
          flops += instruction.cost.flops * static_cast<double>(repeat.count) * ranks_per_stage;
        }
      }
    }
  }
  return flops;
}

absl::StatusOr<TrainingReport> TrainingReport::Open(const Session& session,
                                                    const LaunchConfig& launch,
                                                    const RunOptions& options, int64_t end) {
  TrainingReport report(session, launch, options, end);
  if (session.groups() == nullptr) return report;
  for (const std::string& notice : session.groups()->Notices()) report.Note(notice);
  return report;
}

TrainingReport::TrainingReport(const Session& session, const LaunchConfig& launch,
                               const RunOptions& options, int64_t end)
    : session_(&session),
      options_(&options),
      speaks_(session.rank() == 0),
      end_(end),
      flops_per_step_(ModelFlopsPerStep(session.plan())) {
  if (options.profile) profile_ = std::make_unique<RankProfile>(InstructionsPerStream(session));
  if (speaks_ && options.out != nullptr) {
    progress_ = std::make_unique<Progress>(*options.out, launch.terminal, end, &TerminalColumns);
  }
}

std::string TrainingReport::Directory() const {
  return PathIn(options_->base_directory, session_->plan().job.run().directory());
}

absl::Status TrainingReport::OpenFiles(const std::string& run_id, int64_t resumed) {
  run_id_ = run_id;
  resumed_ = done_ = resumed;
  if (!speaks_) return absl::OkStatus();
  PLANC_ASSIGN_OR_RETURN(metrics_, MetricsWriter::Open(Directory(), resumed, SecondsSince1970()));
  return absl::OkStatus();
}

void TrainingReport::StepBegins() { step_began_ = absl::Now(); }

void TrainingReport::StepEnds() {
  stepping_ += absl::Now() - step_began_;
  ++steps_;
}

void TrainingReport::Note(const std::string& line) {
  if (progress_ != nullptr) progress_->Note(line);
}

absl::Status TrainingReport::Write(int64_t steps_done, double lr,
                                   const ValidationResult& validation) {
  const Plan& plan = session_->plan();
  const bool due = steps_done % plan.job.run().log_every_steps() == 0 || steps_done == end_;
  done_ = steps_done;
  if (!speaks_ || *row_lost_ || (!due && !validation.due)) return absl::OkStatus();

  const int64_t step_tokens = plan.job.batch().global() * plan.job.batch().sequence();
  StepMetrics row = std::exchange(checkpoint_, {});
  row.step = steps_done;
  if (!run_id_.empty()) row.run = run_id_;
  row.tokens = data_->After(steps_done).tokens;
  row.epoch = data_->EpochsAfter(steps_done);
  row.loss = session_->Loss();
  row.validation_loss = validation.loss;
  if (validation.loss.has_value()) row.validation_windows = data_->ValidationWindows();
  row.grad_norm = session_->GradNorm();
  row.lr = lr;
  row.step_seconds = absl::ToDoubleSeconds(stepping_) / static_cast<double>(steps_);
  row.tokens_per_second = static_cast<double>(step_tokens) / row.step_seconds;
  if (options_->peak_flops.has_value()) {
    const double peak = *options_->peak_flops * static_cast<double>(plan.mesh.WorldSize());
    row.mfu = flops_per_step_ / row.step_seconds / peak;
  }
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    row.memory_bytes += session_->rank_class().arena_bytes[kind];
  }
  row.resident_bytes = PeakResidentBytes();
  stepped_ += std::exchange(stepping_, absl::ZeroDuration());
  all_steps_ += std::exchange(steps_, 0);
  if (progress_ != nullptr) progress_->Show(row);
  const StorageWatch::Call call(Storage(), StorageUse::kForeground,
                                absl::StrCat("write to ", Directory(), "/", kMetricsName));
  const absl::Status written = metrics_->Write(row, SecondsSince1970());
  *row_lost_ = !written.ok();
  return written;
}

StorageWatch* TrainingReport::Storage() const {
  return session_->groups() == nullptr ? nullptr : session_->groups()->storage();
}

absl::Status TrainingReport::Sync() const {
  const StorageWatch::Call call(
      Storage(),
      session_->plan().job.checkpoint().async() ? StorageUse::kBackground : StorageUse::kForeground,
      absl::StrCat("fsync of ", Directory(), "/", kMetricsName));
  // Rows that may be lost are no reason against a checkpoint: the next one tells, and stops the
  // run.
  if (metrics_ != nullptr && !*row_lost_) metrics_->Sync().IgnoreError();
  return absl::OkStatus();
}

bool TrainingReport::LacksValidation(int64_t done) const {
  return metrics_ != nullptr && metrics_->kept().has_value() && metrics_->kept()->step == done &&
         !metrics_->kept()->validation_loss.has_value();
}

absl::Status TrainingReport::AddValidation(double validation_loss) {
  if (metrics_ == nullptr) return absl::OkStatus();
  StepMetrics row = *metrics_->kept();
  row.validation_loss = validation_loss;
  row.validation_windows = data_->ValidationWindows();
  if (progress_ != nullptr) progress_->Show(row);
  return metrics_->ReplaceKept(row, SecondsSince1970());
}

void TrainingReport::CheckpointStalled(double seconds) {
  ++checkpoints_.begun;
  checkpoints_.stall_seconds += seconds;
  checkpoint_.checkpoint_stall_seconds = checkpoint_.checkpoint_stall_seconds.value_or(0) + seconds;
}

void TrainingReport::CheckpointsEnded(const std::vector<SaveResult>& results) {
  for (const SaveResult& result : results) {
    checkpoint_.checkpoint_write_seconds = result.write_seconds;
    if (result.status.ok()) {
      ++checkpoints_.complete;
      checkpoints_.bytes += result.bytes;
      checkpoints_.write_seconds += result.write_seconds;
      checkpoint_.checkpoint_bytes = result.bytes;
    } else {
      ++checkpoints_.failed;
      checkpoint_.checkpoint_error = std::string(result.status.message());
      Note(absl::StrCat("checkpoint of step ", result.step,
                        " failed: ", std::string(result.status.message())));
    }
    if (!result.notice.empty()) {
      Note(absl::StrCat("checkpoint of step ", result.step, ": ", result.notice));
    }
  }
}

absl::StatusOr<MachineRates> TrainingReport::MeasureInTurn() {
  const Plan& plan = session_->plan();
  absl::StatusOr<MachineRates> rates = absl::InternalError("no turn to measure the machine");
  for (int64_t turn = 0; turn < plan.ranks_per_node; ++turn) {
    if (turn == session_->rank() % plan.ranks_per_node) {
      rates = MeasureMachineRates(CreateHostDevice().get(), session_->threads(),
                                  session_->instruction_set(), HasBf16(plan));
    }
    // Also after a failure, since the others wait here.
    if (session_->groups() != nullptr && plan.ranks_per_node > 1) {
      PLANC_RETURN_IF_ERROR(session_->groups()->control().Barrier("profile"));
    }
  }
  return rates;
}

absl::StatusOr<std::string> TrainingReport::WriteProfile() {
  const Plan& plan = session_->plan();
  PLANC_ASSIGN_OR_RETURN(const MachineRates rates, MeasureInTurn());
  const std::string stem = absl::StrCat(Directory(), "/", ProfileFileStem(session_->rank()));
  PLANC_RETURN_IF_ERROR(WriteFile(stem + ".json", ChromeTrace(plan, session_->rank(), *profile_)));
  const std::string table = ProfileTable(plan, *profile_, rates);
  PLANC_RETURN_IF_ERROR(WriteFile(stem + ".txt", table));
  return table;
}

absl::Status TrainingReport::Finish() {
  // Before the profile, which takes memory to measure the machine.
  const int64_t peak_resident_bytes = PeakResidentBytes();
  std::string profile;
  if (profile_ != nullptr) {
    PLANC_ASSIGN_OR_RETURN(profile, WriteProfile());
  }
  if (!speaks_) return absl::OkStatus();
  const StorageWatch::Call call(Storage(), StorageUse::kForeground,
                                absl::StrCat("write of the loss curve in ", Directory()));
  PLANC_RETURN_IF_ERROR(WriteLossCurve(Directory(), session_->plan().job.job()));
  ArenaMemory arenas{};
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    arenas[kind] = session_->ArenaMemory(static_cast<MemoryKind>(kind));
  }
  if (checkpoints_.begun > 0) {
    const int64_t steps = all_steps_ + steps_;
    const double stepped = absl::ToDoubleSeconds(stepped_ + stepping_);
    Note(CheckpointLine(checkpoints_, steps > 0 ? stepped / static_cast<double>(steps) : 0));
  }
  progress_.reset();
  if (options_->out != nullptr) {
    *options_->out << "\nMemory of rank 0:\n"
                   << MemoryTable(session_->rank_class(), arenas, peak_resident_bytes);
    if (!profile.empty()) *options_->out << "\nProfile of rank 0, " << profile;
    options_->out->flush();
  }
  return absl::OkStatus();
}

absl::Status TrainingReport::StoppedFor(const absl::Status& lost_row) const {
  absl::Status lost = lost_row;
  if (lost.ok() && metrics_ != nullptr) lost = metrics_->Flush();
  if (lost.ok()) return lost;
  const std::string told = absl::StrCat(lost.message(), "; training stopped after step ", done_,
                                        ", and the checkpoint is\n", CheckpointPath());
  // A disk may get room again: the run goes on then.
  if (absl::IsResourceExhausted(lost)) return absl::CancelledError(told);
  return WithFault(absl::Status(lost.code(), told), FaultOf(lost).value_or(Fault::kInternal));
}

std::string TrainingReport::CheckpointPath() const {
  const std::filesystem::path path =
      CheckpointDirectory(session_->plan(), options_->base_directory);
  return (path / CheckpointName(done_)).lexically_normal().string();
}

TrainingEnd TrainingReport::Stopped(const std::string& reason) const {
  if (!speaks_ || options_->out == nullptr) return TrainingEnd::kStopped;
  std::ostream& out = *options_->out;
  out << "\nstopped by " << reason << "\n  after step " << done_ << " of " << end_;
  if (done_ == resumed_) {
    out << "; no step is lost" << std::endl;
    return TrainingEnd::kStopped;
  }
  out << "; the checkpoint is\n  " << CheckpointPath() << std::endl;
  return TrainingEnd::kStopped;
}

TrainingEnd TrainingReport::StoppedEarly(const absl::Status& reason) const {
  if (!speaks_ || options_->out == nullptr) return TrainingEnd::kStopped;
  *options_->out << "\nstopped before a step was done: " << reason.message()
                 << "\n  no step is lost" << std::endl;
  return TrainingEnd::kStopped;
}

}  // namespace planc
