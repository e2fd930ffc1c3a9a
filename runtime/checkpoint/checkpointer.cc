#include "runtime/checkpoint/checkpointer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// What one thread copies at a time.
constexpr int64_t kPieceElements = int64_t{4} << 20;

struct CopyPiece {
  const float* from;
  float* to;
  int64_t elements;
};

void AddPieces(const float* from, float* to, int64_t elements, std::vector<CopyPiece>* pieces) {
  for (int64_t at = 0; at < elements; at += kPieceElements) {
    pieces->push_back({from + at, to + at, std::min(elements - at, kPieceElements)});
  }
}

// The same shards, with the state where Snapshot copies it to.
std::vector<ShardView> SnapshotsOf(const std::vector<ShardView>& shards) {
  std::vector<ShardView> snapshots = shards;
  for (ShardView& shard : snapshots) {
    shard.master = shard.snapshot;
    shard.m = shard.snapshot + shard.count;
    shard.v = shard.snapshot + 2 * shard.count;
  }
  return snapshots;
}

void Snapshot(const std::vector<ShardView>& from, const std::vector<ShardView>& to, int threads) {
  std::vector<CopyPiece> pieces;
  for (size_t i = 0; i < from.size(); ++i) {
    AddPieces(from[i].master, to[i].master, from[i].count, &pieces);
    AddPieces(from[i].m, to[i].m, from[i].count, &pieces);
    AddPieces(from[i].v, to[i].v, from[i].count, &pieces);
  }
  if (pieces.empty()) return;
  std::atomic<size_t> next{0};
  const auto copy = [&] {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      std::memcpy(pieces[i].to, pieces[i].from,
                  static_cast<size_t>(pieces[i].elements) * sizeof(float));
    }
  };
  const size_t helpers = std::min(pieces.size(), static_cast<size_t>(std::max(threads, 1))) - 1;
  std::vector<std::thread> helping;
  for (size_t i = 0; i < helpers; ++i) helping.emplace_back(copy);
  copy();
  for (std::thread& thread : helping) thread.join();
}

// The shards that this rank writes.
std::vector<ShardView> WrittenShards(const Plan& plan, int64_t rank,
                                     const std::vector<ShardView>& shards) {
  std::vector<ShardView> written;
  for (const ShardView& shard : shards) {
    if (WritesUnit(plan, rank, shard.unit)) written.push_back(shard);
  }
  return written;
}

// Whether the disk is to blame: the run may go on, and the next save may succeed.
bool IsRefusedByDisk(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsDataLoss(status);
}

}  // namespace

Checkpointer::Checkpointer(const Plan& plan, int64_t rank, int threads,
                           std::vector<ShardView> shards, std::string directory,
                           Agreement& agreement, SaveOptions options)
    : plan_(plan),
      rank_(rank),
      threads_(threads),
      shards_(WrittenShards(plan, rank, shards)),
      sources_(plan.job.checkpoint().async() ? SnapshotsOf(shards_) : shards_),
      directory_(std::move(directory)),
      agreement_(agreement),
      watched_(options.files == nullptr ? host_files_ : *options.files, options.storage,
               plan.job.checkpoint().async() ? StorageUse::kBackground : StorageUse::kForeground),
      files_(watched_),
      options_(std::move(options)) {
  options_.files = &files_;
}

Checkpointer::~Checkpointer() {
  if (!writer_.joinable()) return;
  files_.Cancel();
  agreement_.Cancel();
  writer_.join();
}

absl::StatusOr<double> Checkpointer::Save(int64_t step, bool last) {
  const absl::Time begin = absl::Now();
  Await();
  PLANC_RETURN_IF_ERROR(MustEnd(last));
  if (plan_.job.checkpoint().async()) {
    Snapshot(shards_, sources_, threads_);
    writer_ = std::thread([this, step] { Write(step); });
  } else {
    Write(step);
    PLANC_RETURN_IF_ERROR(MustEnd(last));
  }
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

absl::Status Checkpointer::MustEnd(bool last) const {
  if (last_.ok() || !IsRefusedByDisk(last_)) return last_;
  if (last) return absl::OkStatus();
  const int64_t most = plan_.job.checkpoint().max_failed_saves();
  if (most == 0 || failed_in_a_row_ < most) return absl::OkStatus();
  return WithContext(last_, absl::StrCat("the last ", Counted(failed_in_a_row_, "save"),
                                         " failed, as many as checkpoint.max_failed_saves allows"));
}

void Checkpointer::Write(int64_t step) {
  const absl::Time begin = absl::Now();
  const absl::StatusOr<SavedCheckpoint> saved =
      WriteCheckpoint(plan_, rank_, sources_, step, directory_, agreement_, options_);
  SaveResult result;
  result.step = step;
  result.status = saved.status();
  result.write_seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  if (saved.ok()) {
    result.bytes = saved->bytes;
    result.notice = saved->notice;
  }
  last_ = result.status;
  failed_in_a_row_ = last_.ok() ? 0 : failed_in_a_row_ + 1;
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_.push_back(std::move(result));
}

std::vector<SaveResult> Checkpointer::TakeEnded() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(ended_, {});
}

void Checkpointer::Await() {
  if (!writer_.joinable()) return;
  const StorageWatch::Call call(options_.storage, StorageUse::kForeground,
                                "the end of the save before, in " + directory_ + ",");
  writer_.join();
}

absl::Status Checkpointer::Finish() {
  Await();
  return last_;
}

}  // namespace planc
