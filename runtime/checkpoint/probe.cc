#include "runtime/checkpoint/probe.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/checkpoint_size.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "runtime/data/mapped_file.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kFolder[] = "probe";
constexpr size_t kProbeBytes = 4096;  // a block: what a quota counts

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.4g MiB", static_cast<double>(bytes) / (1 << 20));
}

// One probe, as one rank sees it.
class Probe {
 public:
  Probe(const Plan& plan, int64_t rank, const SavesToCome& saves, const FileSystem& files)
      : plan_(plan),
        rank_(rank),
        saves_(saves),
        files_(files),
        folder_(absl::StrCat(saves.directory, "/", kFolder)) {}

  absl::Status Run(Agreement& agreement) {
    absl::Status mine;
    if (rank_ == 0) mine = Begin();
    PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
    mine = WritesAnything(plan_, rank_) ? WriteOwn() : absl::OkStatus();
    PLANC_RETURN_IF_ERROR(agreement.AllOk(mine));
    if (rank_ == 0) mine = ReadAll();
    return agreement.AllOk(mine);
  }

  // Whatever came of it.
  void Clear() const {
    if (rank_ == 0) RemoveTree(folder_, files_).IgnoreError();
  }

 private:
  absl::Status Begin() const {
    PLANC_RETURN_IF_ERROR(RemoveTree(folder_, files_));
    return CreateDirectories(folder_, files_);
  }

  std::string PathOf(int64_t rank) const { return absl::StrCat(folder_, "/rank-", rank); }

  // Known to all ranks, and of no other start of the run.
  std::string TextOf(int64_t rank) const {
    std::string text = absl::StrCat("run ", saves_.run_id, " from step ", saves_.first_step,
                                    ", rank ", rank, "\n");
    text.resize(kProbeBytes, '.');
    return text;
  }

  absl::Status Read(int64_t rank, const std::string& defect) const {
    const std::string path = PathOf(rank);
    const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
    const auto failed = [&](const std::string& why) {
      return WithFault(absl::DataLossError(absl::StrCat(path, ": ", defect, why)),
                       Fault::kEnvironment);
    };
    if (!file.ok()) return failed(absl::StrCat(" (", file.status().message(), ")"));
    const absl::Status fetched = file->Fetch(file->data(), file->size());
    if (!fetched.ok()) return failed(absl::StrCat(" (", fetched.message(), ")"));
    const std::string text(file->data(), static_cast<size_t>(file->size()));
    return text == TextOf(rank) ? absl::OkStatus() : failed("");
  }

  absl::Status WriteOwn() const {
    const std::string text = TextOf(rank_);
    const std::string path = PathOf(rank_);
    const std::string partial = path + ".partial";
    const FilePieces pieces = {{text.data(), static_cast<int64_t>(text.size())}};
    PLANC_RETURN_IF_ERROR(WriteDurably(partial, pieces, files_));
    PLANC_RETURN_IF_ERROR(RenamePath(partial, path, files_));
    PLANC_RETURN_IF_ERROR(SyncDirectory(folder_, files_));
    return Read(rank_, "does not read as it was written");
  }

  absl::Status ReadAll() const {
    for (int64_t rank = 0; rank < plan_.mesh.WorldSize(); ++rank) {
      if (!WritesAnything(plan_, rank)) continue;
      PLANC_RETURN_IF_ERROR(Read(rank, absl::StrCat("rank 0 does not see what rank ", rank,
                                                    " wrote: all ranks must share "
                                                    "checkpoint.directory")));
    }
    PLANC_RETURN_IF_ERROR(RemoveTree(folder_, files_));
    PLANC_RETURN_IF_ERROR(SyncDirectory(saves_.directory, files_));
    return CheckSpace();
  }

  absl::Status CheckSpace() const {
    const CheckpointSize size = CheckpointSizeOf(plan_);
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < static_cast<rlim_t>(size.largest_rank_bytes)) {
      return SystemError(
          absl::StrCat(saves_.directory, ": cannot write a file of ",
                       Mebibytes(size.largest_rank_bytes), " where the process may write ",
                       Mebibytes(static_cast<int64_t>(limit.rlim_cur)), " (ulimit -f)"),
          EFBIG);
    }
    const int64_t free = files_.FreeBytes(saves_.directory);
    const int64_t missing = MissingCheckpointBytes(plan_, saves_);
    if (free < 0 || free >= missing) return absl::OkStatus();  // or the file system does not say
    const int64_t count = missing / std::max<int64_t>(size.total_bytes, 1);
    return WithFault(absl::FailedPreconditionError(absl::StrCat(
                         saves_.directory, ": ", Counted(count, "more checkpoint"), " of ",
                         Mebibytes(size.total_bytes), " will lie here, ", Mebibytes(missing),
                         ", and ", Mebibytes(free), " are free: make room, lower checkpoint.keep (",
                         plan_.job.checkpoint().keep(),
                         "; at least two stay, and one more while it is written), or name another "
                         "checkpoint.directory")),
                     Fault::kEnvironment);
  }

  const Plan& plan_;
  const int64_t rank_;
  const SavesToCome& saves_;
  const FileSystem& files_;
  const std::string folder_;
};

// Those of the run, which pruning counts.
int64_t CountOwn(const SavesToCome& saves) {
  int64_t own = 0;
  for (const CheckpointEntry& entry : ListCheckpoints(saves.directory)) {
    if (entry.step > saves.first_step) continue;
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(entry.path);
    own += identity.ok() && identity->run.id == saves.run_id ? 1 : 0;
  }
  return own;
}

}  // namespace

int64_t CountSaves(const Plan& plan, const SavesToCome& saves) {
  if (saves.end_step <= saves.first_step) return 0;
  const int64_t every = plan.job.checkpoint().every_steps();
  if (every <= 0) return 1;
  const int64_t last = saves.end_step % every == 0 ? 0 : 1;
  return saves.end_step / every - saves.first_step / every + last;
}

int64_t MissingCheckpointBytes(const Plan& plan, const SavesToCome& saves) {
  const int64_t to_come = CountSaves(plan, saves);
  if (to_come == 0) return 0;
  // A run keeps at least two, of which one is proven (SaveOptions::keep_proven), and writes the
  // next one before it removes one.
  const int64_t kept = std::max<int64_t>(plan.job.checkpoint().keep(), 2);
  const int64_t most = kept + 1 - CountOwn(saves);
  return std::clamp<int64_t>(most, 1, to_come) * CheckpointSizeOf(plan).total_bytes;
}

absl::Status ProbeDirectory(const Plan& plan, int64_t rank, const SavesToCome& saves,
                            Agreement& agreement, const FileSystem& files) {
  if (CountSaves(plan, saves) == 0) return absl::OkStatus();
  Probe probe(plan, rank, saves, files);
  const absl::Status found = probe.Run(agreement);
  if (!found.ok()) probe.Clear();
  return WithContext(found, "checkpoint.directory");
}

}  // namespace planc
