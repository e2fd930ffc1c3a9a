#include "runtime/launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/launch/signals.h"
#include "schemas/fault.h"

namespace planc {
namespace {

constexpr int kCannotExecute = 127;

// This process's variables with those of the command on top.
std::vector<std::string> Variables(const RankCommand& command) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool replaced = false;
    for (const auto& [name, value] : command.environment) {
      replaced = replaced || absl::StartsWith(*variable, absl::StrCat(name, "="));
    }
    if (!replaced) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : command.environment) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: only calls that are safe there.
[[noreturn]] void BecomeRank(const RankCommand& command, pid_t parent, char** arguments,
                             char** variables) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitPeerLost);
  setpgid(0, 0);
  dup2(command.output, STDOUT_FILENO);
  dup2(command.error, STDERR_FILENO);
  for (const int descriptor : command.inherited) fcntl(descriptor, F_SETFD, 0);
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : kStopSignals) sigaddset(&stops, signal);
  sigprocmask(SIG_SETMASK, &stops, nullptr);
  execve(command.executable.c_str(), arguments, variables);
  _exit(kCannotExecute);
}

}  // namespace

absl::StatusOr<pid_t> StartRank(const RankCommand& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> variables = Variables(command);
  const std::vector<char*> argument_pointers = Pointers(&arguments);
  const std::vector<char*> variable_pointers = Pointers(&variables);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return SystemError("fork", errno);
  if (child == 0) {
    BecomeRank(command, parent, const_cast<char**>(argument_pointers.data()),
               const_cast<char**>(variable_pointers.data()));
  }
  return child;
}

RankExit DecodeExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {kExitPeerLost, WTERMSIG(wait_status)};
  return {WEXITSTATUS(wait_status), 0};
}

std::string ExitText(const RankExit& end) {
  if (end.signal == 0) return absl::StrCat("exit code ", end.code);
  return absl::StrCat("signal ", end.signal, " (", strsignal(end.signal), ")");
}

}  // namespace planc
