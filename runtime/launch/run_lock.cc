#include "runtime/launch/run_lock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/process_start.h"
#include "runtime/process_group/machine_identity.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kHeading[] = "planc run lock 1";
// The last line; both texts have the same length.
constexpr char kBeatFormat[] = "beat %016d\n";
constexpr char kReleased[] = "ended               \n";
constexpr absl::Duration kGlance = absl::Milliseconds(500);

absl::Status Refused(const std::string& path, const std::string& action) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": cannot ", action, ": ", std::strerror(errno)));
}

// The numbers of the lock files in a directory, ascending; none when it does not exist.
absl::StatusOr<std::vector<int64_t>> LockNumbers(const std::string& directory) {
  std::vector<int64_t> numbers;
  DIR* const folder = opendir(directory.c_str());
  if (folder == nullptr) {
    if (errno == ENOENT) return numbers;
    return Refused(directory, "read");
  }
  const std::string prefix = kRunLockPrefix;
  errno = 0;
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    const std::string name = entry->d_name;
    int64_t number = 0;
    if (name.rfind(prefix, 0) == 0 && absl::SimpleAtoi(name.substr(prefix.size()), &number) &&
        number > 0) {
      numbers.push_back(number);
    }
  }
  const int failure = errno;
  closedir(folder);
  errno = failure;
  if (failure != 0) return Refused(directory, "read");
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string LockPath(const std::string& directory, int64_t number) {
  return absl::StrCat(directory, "/", kRunLockPrefix, number);
}

// Opened anew each time, which makes a network file system ask its server.
std::string ReadLock(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) return "";
  char buffer[4096];
  const ssize_t bytes = read(file, buffer, sizeof(buffer));
  close(file);
  return bytes > 0 ? std::string(buffer, static_cast<size_t>(bytes)) : "";
}

std::optional<LockOwner> ParseLock(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() < 3 || lines[0] != kHeading) return std::nullopt;
  const Json json = Json::parse(lines[1], nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto number = [&json](const char* name) {
    const auto field = json.find(name);
    return field != json.end() && field->is_number_integer() ? field->get<int64_t>() : 0;
  };
  const auto word = [&json](const char* name) {
    const auto field = json.find(name);
    return field != json.end() && field->is_string() ? field->get<std::string>() : std::string();
  };
  LockOwner owner;
  owner.pid = number("pid");
  owner.process_start = number("process_start");
  owner.machine = word("machine");
  owner.host = word("host");
  owner.since = word("since");
  owner.released = lines[2].rfind("ended", 0) == 0;
  if (owner.pid <= 0 || owner.process_start <= 0) return std::nullopt;
  return owner;
}

OwnerState StateOf(const std::optional<LockOwner>& owner, const std::string& host) {
  if (!owner.has_value()) return OwnerState::kElsewhere;  // it may be being written
  if (owner->released) return OwnerState::kNone;
  if (owner->machine.empty() || owner->machine != MachineIdentity(host)) {
    return OwnerState::kElsewhere;
  }
  const absl::StatusOr<int64_t> start = ProcessStart(owner->pid);
  if (start.ok()) return *start == owner->process_start ? OwnerState::kAlive : OwnerState::kDead;
  // /proc may hide processes of other users.
  if (kill(static_cast<pid_t>(owner->pid), 0) == 0 || errno == EPERM) {
    return absl::IsNotFound(start.status()) ? OwnerState::kElsewhere : OwnerState::kDead;
  }
  return OwnerState::kDead;
}

absl::Status WriteWhole(int file, const std::string& text, const std::string& path) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Refused(path, "write");
    done += static_cast<size_t>(written);
  }
  if (fsync(file) != 0) return Refused(path, "sync");
  return absl::OkStatus();
}

// Creates `path` with `text`. OK: this process did; AlreadyExists: another one has.
class LockFile {
 public:
  LockFile(std::string directory, std::string text, const RunLockOptions& options)
      : directory_(std::move(directory)), text_(std::move(text)), options_(options) {}

  ~LockFile() {
    if (!draft_.empty()) unlink(draft_.c_str());
  }

  absl::Status Create(const std::string& path) {
    if (!options_.hard_links) return CreateInPlace(path);
    PLANC_RETURN_IF_ERROR(WriteDraft());
    Step("draft written");
    // A network may repeat a request that was carried out, and then report that the file exists.
    const bool linked = link(draft_.c_str(), path.c_str()) == 0 || Links() == 2;
    if (linked) return absl::OkStatus();
    if (errno == EEXIST) return absl::AlreadyExistsError(path);
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) return CreateInPlace(path);
    return Refused(path, "create");
  }

 private:
  void Step(const char* name) const {
    if (options_.at_step != nullptr) options_.at_step(name);
  }

  nlink_t Links() const {
    const int failure = errno;
    struct stat file {};
    const nlink_t links = stat(draft_.c_str(), &file) == 0 ? file.st_nlink : 0;
    errno = failure;
    return links;
  }

  absl::Status WriteDraft() {
    if (!draft_.empty()) return absl::OkStatus();
    std::random_device random;
    const uint64_t unique = (static_cast<uint64_t>(random()) << 32) | random();
    const std::string path = absl::StrFormat("%s/run.lock-draft-%016x", directory_, unique);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) return Refused(path, "create");
    draft_ = path;
    const absl::Status written = WriteWhole(file, text_, path);
    close(file);
    return written;
  }

  // Between the two calls the lock is empty, and its owner cannot be told from it.
  absl::Status CreateInPlace(const std::string& path) const {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) {
      return errno == EEXIST ? absl::AlreadyExistsError(path) : Refused(path, "create");
    }
    Step("created empty");
    const absl::Status written = WriteWhole(file, text_, path);
    close(file);
    return written;
  }

  const std::string directory_;
  const std::string text_;
  const RunLockOptions& options_;
  std::string draft_;  // a file of this process alone; empty: none yet
};

std::string HeadOf(const std::string& host) {
  Json json;
  json["pid"] = getpid();
  json["process_start"] = ProcessStart(getpid()).value_or(0);
  json["machine"] = MachineIdentity(host);
  json["host"] = host;
  json["since"] = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  return absl::StrCat(kHeading, "\n", json.dump(-1, ' ', false, Json::error_handler_t::replace),
                      "\n");
}

absl::Status HeldBy(const std::string& directory, const LockView& lock) {
  const std::string owner =
      lock.owner.has_value() ? OwnerText(*lock.owner) : "a process that it does not name";
  return absl::FailedPreconditionError(absl::StrCat(directory,
                                                    " is in use by another planc run: ", owner,
                                                    " (", LockPath(directory, lock.number), ")"));
}

// OK once the owner of `lock` counts as dead.
absl::Status WatchOwner(const std::string& directory, const LockView& lock,
                        const RunLockOptions& options) {
  if (options.on_watch != nullptr) {
    options.on_watch(absl::StrCat(
        directory, " belongs to ",
        lock.owner.has_value() ? OwnerText(*lock.owner) : "a process that it does not name",
        ", which cannot be seen from here: watching for ", absl::FormatDuration(options.watch),
        " whether it is alive"));
  }
  const std::string path = LockPath(directory, lock.number);
  absl::Duration watched;
  const absl::Duration glance = std::min(kGlance, options.watch / 4);
  for (; watched < options.watch; watched += glance) {
    if (options.cancelled != nullptr && options.cancelled()) {
      return absl::CancelledError("asked to stop while a lock was watched");
    }
    absl::SleepFor(glance);
    if (ReadLock(path) != lock.text) {
      PLANC_ASSIGN_OR_RETURN(const LockView now, ViewLock(directory, options.host));
      const bool held = now.state == OwnerState::kAlive || now.state == OwnerState::kElsewhere;
      return held ? HeldBy(directory, now) : absl::OkStatus();  // it may have been released
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string OwnerText(const LockOwner& owner) {
  return absl::StrCat("process ", owner.pid, " on host ", owner.host, " since ", owner.since);
}

absl::StatusOr<LockView> ViewLock(const std::string& directory, const std::string& host) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, LockNumbers(directory));
  LockView view;
  if (numbers.empty()) return view;
  view.number = numbers.back();
  view.text = ReadLock(LockPath(directory, view.number));
  view.owner = ParseLock(view.text);
  view.state = StateOf(view.owner, host);
  return view;
}

absl::StatusOr<std::unique_ptr<RunLock>> RunLock::Take(const std::string& directory,
                                                       const RunLockOptions& options) {
  const auto step = [&options](const char* name) {
    if (options.at_step != nullptr) options.at_step(name);
  };
  const std::string head = HeadOf(options.host);
  LockFile file(directory, absl::StrCat(head, absl::StrFormat(kBeatFormat, 0)), options);
  while (true) {
    PLANC_ASSIGN_OR_RETURN(const LockView lock, ViewLock(directory, options.host));
    if (lock.state == OwnerState::kAlive) return HeldBy(directory, lock);
    if (lock.state == OwnerState::kElsewhere) {
      PLANC_RETURN_IF_ERROR(WatchOwner(directory, lock, options));
    }
    step("judged");
    const std::string path = LockPath(directory, lock.number + 1);
    const absl::Status created = file.Create(path);
    if (absl::IsAlreadyExists(created)) continue;  // another process was faster: judge it
    PLANC_RETURN_IF_ERROR(created);
    step("created");
    PLANC_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, LockNumbers(directory));
    if (numbers.empty() || numbers.back() != lock.number + 1) {
      unlink(path.c_str());  // taken, and perhaps released, since it was judged
      continue;
    }
    for (const int64_t number : numbers) {
      if (number <= lock.number) unlink(LockPath(directory, number).c_str());
    }
    step("taken");
    return std::unique_ptr<RunLock>(
        new RunLock(path, static_cast<off_t>(head.size()), options.beat));
  }
}

RunLock::RunLock(std::string path, off_t beat_offset, absl::Duration beat)
    : path_(std::move(path)), beat_offset_(beat_offset), beat_(beat), process_(getpid()) {
  // Signals are for the other threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  heart_ = std::thread([this] { Beat(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void RunLock::Beat() {
  for (int64_t count = 1; !end_.WaitForNotificationWithTimeout(beat_); ++count) {
    WriteState(absl::StrFormat(kBeatFormat, count));
  }
}

// Closed each time, which makes a network file system tell its server. Without O_CREAT: a lock that
// was taken over, or removed with its directory, stays away.
void RunLock::WriteState(const std::string& state) {
  const int file = open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(file, state.data(), state.size(), beat_offset_);
  close(file);
}

RunLock::~RunLock() {
  end_.Notify();
  heart_.join();
  if (getpid() == process_) WriteState(kReleased);
}

absl::Status CheckStillOwned(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = path.substr(0, slash);
  const std::string prefix = kRunLockPrefix;
  int64_t own = 0;
  if (!absl::SimpleAtoi(path.substr(slash + 1 + prefix.size()), &own)) {
    return absl::InternalError(absl::StrCat(path, ": not the name of a lock"));
  }
  PLANC_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, LockNumbers(directory));
  if (numbers.empty() || numbers.back() <= own) return absl::OkStatus();
  const std::optional<LockOwner> owner = ParseLock(ReadLock(LockPath(directory, numbers.back())));
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " was taken over by another planc run while this one did not move",
      owner.has_value() ? absl::StrCat(": ", OwnerText(*owner)) : "", "; this one ends"));
}

}  // namespace planc
