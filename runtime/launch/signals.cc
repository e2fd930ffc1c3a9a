#include "runtime/launch/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "schemas/exit_code.h"

namespace planc {
namespace {

// A signal handler has no argument to reach an object through.
std::atomic<bool> claimed{false};  // by the first signal
std::atomic<int> received{0};      // that signal, once what is known about it is written
std::atomic<int64_t> first_milliseconds{0};
std::atomic<const char*> end_at_once{nullptr};
pid_t sender = 0;
bool from_kernel = false;
char sender_program[32] = {};
int nested = 0;
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Whoever presses Ctrl-C again after so long means it.
constexpr int64_t kOneRequestMilliseconds = 1000;

int64_t Milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// The functions from here to Note are called by the handler: only what is safe there.

// Fills `name` with the program of a process; empty when it is gone.
void ReadProgram(pid_t process, char* name, size_t size) {
  name[0] = '\0';
  char path[32] = "/proc/";
  size_t length = std::strlen(path);
  char digits[16];
  int count = 0;
  for (pid_t rest = process; rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) path[length++] = digits[--count];
  std::memcpy(path + length, "/comm", sizeof("/comm"));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t bytes = read(file, name, size - 1);
  close(file);
  name[bytes > 0 ? bytes : 0] = '\0';
  for (char* end = name; *end != '\0'; ++end) {
    if (*end == '\n') *end = '\0';
  }
}

void Note(int signal, siginfo_t* info, void*) {
  const int error = errno;
  if (const char* const message = end_at_once; message != nullptr) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
    _exit(kExitStopped);
  }
  if (!claimed.exchange(true)) {
    from_kernel = info->si_code == SI_KERNEL;
    sender = info->si_code <= 0 ? info->si_pid : 0;
    if (sender > 0) ReadProgram(sender, sender_program, sizeof(sender_program));
    first_milliseconds = Milliseconds();
    received = signal;
  } else if (signal == SIGINT && received != 0 &&
             Milliseconds() - first_milliseconds >= kOneRequestMilliseconds) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = error;
}

}  // namespace

std::vector<int> ActiveStopSignals() {
  std::vector<int> active;
  for (const int signal : kStopSignals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) active.push_back(signal);
  }
  return active;
}

std::string ProgramOf(pid_t process) {
  char name[32];
  ReadProgram(process, name, sizeof(name));
  return name;
}

std::string StopText(const StopRequest& request) {
  const char* const abbreviation = sigabbrev_np(request.signal);
  const std::string name = absl::StrCat("SIG", abbreviation == nullptr ? "?" : abbreviation);
  if (request.program == "planc") return name + ", passed on by planc";
  if (request.sender > 0) {
    return absl::StrCat(name, " from process ", request.sender,
                        request.program.empty() ? "" : absl::StrCat(" (", request.program, ")"));
  }
  if (!request.kernel) return name;
  switch (request.signal) {
    case SIGINT:
      return name + " (Ctrl-C)";
    case SIGHUP:
      return name + " (the terminal was closed)";
    case SIGXCPU:
      return name + " (the limit of CPU time)";
    default:
      return name;
  }
}

ScopedStopSignals::ScopedStopSignals() {
  if (nested++ == 0) {
    claimed = false;
    received = 0;
    end_at_once = nullptr;
  }
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : kStopSignals) sigaddset(&stops, signal);
  for (const int signal : ActiveStopSignals()) {
    struct sigaction action {};
    action.sa_sigaction = &Note;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    action.sa_mask = stops;
    Previous previous{signal, {}};
    sigaction(signal, &action, &previous.action);
    previous_.push_back(previous);
  }
  pthread_sigmask(SIG_UNBLOCK, &stops, &previous_blocked_);
}

ScopedStopSignals::~ScopedStopSignals() {
  pthread_sigmask(SIG_SETMASK, &previous_blocked_, nullptr);
  for (const Previous& previous : previous_) sigaction(previous.signal, &previous.action, nullptr);
  --nested;
}

int ScopedStopSignals::Received() { return received; }

StopRequest ScopedStopSignals::Request() {
  StopRequest request;
  request.signal = received;
  if (request.signal == 0) return request;
  request.sender = sender;
  request.kernel = from_kernel;
  request.program = sender_program;
  return request;
}

void ScopedStopSignals::EndAtOnce(const char* message) { end_at_once = message; }

void IgnorePipeSignal() { std::signal(SIGPIPE, SIG_IGN); }

void IgnoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace planc
