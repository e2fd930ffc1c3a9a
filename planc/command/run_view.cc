#include "planc/command/run_view.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/newest_checkpoint.h"
#include "runtime/metrics/metrics_writer.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Rows are shorter by far.
constexpr std::streamoff kTailBytes = 65536;

}  // namespace

std::optional<StepMetrics> LastMetricsRow(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (!file || size <= 0) return std::nullopt;
  const std::streamoff begin = std::max<std::streamoff>(0, size - kTailBytes);
  std::string tail(static_cast<size_t>(size - begin), '\0');
  file.seekg(begin);
  file.read(tail.data(), size - begin);
  size_t end = tail.rfind('\n');
  while (end != std::string::npos && end > 0) {
    const size_t before = tail.rfind('\n', end - 1);
    const size_t from = before == std::string::npos ? 0 : before + 1;
    const auto row = ParseMetricsJson(tail.substr(from, end - from));
    if (row.ok()) return *row;
    end = before;
  }
  return std::nullopt;
}

std::string RunView::State() const {
  if (record.state != RunState::kRunning) return RunStateName(record.state);
  return lock.state == OwnerState::kAlive || lock.state == OwnerState::kElsewhere ? "running"
                                                                                  : "gone";
}

absl::StatusOr<RunView> ViewRun(const std::string& directory, const std::string& host) {
  RunView view;
  view.directory = directory;
  PLANC_ASSIGN_OR_RETURN(view.record, ReadRunRecord(directory));
  const absl::StatusOr<LockView> lock = ViewLock(directory, host);
  if (lock.ok()) view.lock = *lock;
  view.last = LastMetricsRow(absl::StrCat(directory, "/", kMetricsName));
  const std::optional<CheckpointEntry> newest =
      NewestCheckpoint(view.record.checkpoint_directory, SelectionOf(view.record));
  if (newest.has_value()) view.checkpoint = newest->path;
  view.step = view.record.last_step;
  if (view.record.state == RunState::kRunning && view.last.has_value()) {
    view.step = view.last->step;
  }
  return view;
}

}  // namespace planc
