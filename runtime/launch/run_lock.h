#ifndef PLANC_RUNTIME_LAUNCH_RUN_LOCK_H_
#define PLANC_RUNTIME_LAUNCH_RUN_LOCK_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace planc {

// A lock file is `directory`/run.lock.N. The newest N counts; older ones have been taken over.
inline constexpr char kRunLockPrefix[] = "run.lock.";

// What a lock file says about the process that wrote it.
struct LockOwner {
  int64_t pid = 0;
  int64_t process_start = 0;  // of that process, in clock ticks since its machine was booted
  std::string machine;        // MachineIdentity; empty when the system does not tell
  std::string host;           // name of the machine, for people
  std::string since;          // when the lock was taken, UTC, for people
  bool released = false;      // the owner has ended in order
};

enum class OwnerState {
  kNone,      // there is no lock, or its owner released it
  kAlive,     // the owner runs: on this machine, by its process
  kDead,      // it ran on this machine and does not any more
  kElsewhere  // it cannot be seen from here: its heartbeat must be watched
};

// The newest lock of a directory.
struct LockView {
  int64_t number = 0;              // 0: there is none
  std::string text;                // as read; changes with each heartbeat
  std::optional<LockOwner> owner;  // nothing when the text cannot be read as a lock
  OwnerState state = OwnerState::kNone;
};
// Errors: FailedPrecondition when the directory exists but cannot be read, naming the reason.
absl::StatusOr<LockView> ViewLock(const std::string& directory, const std::string& host);

// "process 4711 on host n1 since 2026-12-01T04:13:04Z".
std::string OwnerText(const LockOwner& owner);

struct RunLockOptions {
  std::string host;  // this machine's name
  absl::Duration beat = absl::Seconds(5);
  // How long a heartbeat that does not move is watched before its owner counts as dead.
  absl::Duration watch = absl::Seconds(30);
  // Told once before an owner elsewhere is watched.
  std::function<void(const std::string& text)> on_watch;
  // Whether to give up watching, e.g. for a signal.
  std::function<bool()> cancelled;
  bool hard_links = true;  // false: as on file systems that have none
  // For tests: called between the operations of taking a lock, with a name for each.
  std::function<void(const char* step)> at_step;
};

// Ownership of a directory among processes on any machines that share it, without flock, which
// network file systems do not all have. Two things are relied on: a file is created exclusively
// (link, or O_EXCL), and a directory that one has just changed is read as it is.
//
// Lock files have numbers. A lock is taken by creating the number after the newest one, which only
// one process can, and only if that one's owner has released it or is dead; it counts if there is
// no newer one afterwards. The newest file is never removed, so a process that slept in between
// cannot mistake an old state for the present one. An owner is dead when its process is gone
// (same machine: process id and start time), or when its heartbeat, a number in the file, did not
// move while this process watched; clocks of two machines are never compared.
class RunLock {
 public:
  // Errors: FailedPrecondition naming the owner when there is one, and when the directory is not
  // writable, with the system's reason; Cancelled.
  static absl::StatusOr<std::unique_ptr<RunLock>> Take(const std::string& directory,
                                                       const RunLockOptions& options);
  // Releases the lock.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  const std::string& path() const { return path_; }

 private:
  RunLock(std::string path, off_t beat_offset, absl::Duration beat);
  void Beat();
  void WriteState(const std::string& state);

  const std::string path_;
  const off_t beat_offset_;
  const absl::Duration beat_;
  const pid_t process_;
  absl::Notification end_;
  std::thread heart_;
};

// OK while the lock at `path` is the newest of its directory; else another process has taken over
// from an owner that seemed dead (it was suspended, or cut off from the file system), and nothing
// may be written any more. Errors: FailedPrecondition naming the new owner.
absl::Status CheckStillOwned(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_RUN_LOCK_H_
