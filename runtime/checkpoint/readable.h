#ifndef PLANC_RUNTIME_CHECKPOINT_READABLE_H_
#define PLANC_RUNTIME_CHECKPOINT_READABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/mapped_file.h"

namespace planc {

// What a checkpoint lacks is told apart from what the system does not let this process see (EACCES,
// ESTALE, EIO, EMFILE ...). Only the first makes a checkpoint damaged, so that an older one is
// taken; with the second nobody knows, and a run stops with the reason rather than lose steps.

// Whether an error says that a checkpoint or a part of it is damaged or not there.
bool IsDamage(const absl::Status& status);
// Whether the checkpoint itself is to blame: it is damaged, or holds values that are not finite.
bool IsUnfit(const absl::Status& status);

// Whether an error of the system says that there is nothing at a path.
bool IsAbsence(int error);
// The error of a path that the system does not let this process look at: Internal, with the reason.
// One of the disk itself (EIO) has the fault of the data, which starting again does not mend.
absl::Status CannotTell(const std::string& path, int error);

// Whether a regular file is at `path`. Errors: as CannotTell.
absl::StatusOr<bool> IsFileThere(const std::string& path);
// Maps a file of a checkpoint. Errors: DataLoss when it is not there or no file; else CannotTell.
absl::StatusOr<MappedFile> OpenPart(const std::string& path);
// Why bytes of `path` could not be fetched, `fetched`: DataLoss when the file was cut short, else
// CannotTell.
absl::Status FetchFailure(const std::string& path, const absl::Status& fetched);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_READABLE_H_
