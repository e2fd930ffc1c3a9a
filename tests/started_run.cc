#include "tests/started_run.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "tests/run_files.h"

namespace planc {

StartedRun::StartedRun(const std::string& folder, int ranks, const std::string& mesh,
                       const std::string& run, const std::string& more)
    : folder_(folder) {
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/train.txt") << std::string(20000, 'a');
  std::ofstream(folder_ + "/job.yaml")
      << "job: stop\n"
         "model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn_hidden: 64,"
         " vocab: 256}\n"
      << "cluster: {nodes: 1, gpus_per_node: " << ranks << ", device: host}\n"
      << "mesh: {" << mesh << "}\n"
      << "precision: {compute: fp32}\n"
         "batch: {global: 8, micro: 1, sequence: 32}\n"
         "optimizer: {lr: 1e-3}\n"
         "data: {train: [train.txt], validation: [train.txt], format: bytes}\n"
      << "run: {log_every_steps: 1, directory: run, " << run << "}\n"
      << "checkpoint: {directory: saved, resume: auto}\n"
      << more << "\n";
}

StartedRun::~StartedRun() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void StartedRun::Start(const std::vector<std::string>& arguments,
                       const std::function<void()>& prepare) {
  const std::string program = std::filesystem::absolute("planc/planc").string();
  std::vector<char*> pointers = {const_cast<char*>("planc")};
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || chdir(folder_.c_str()) != 0) _exit(126);
  const int log = open("planc.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  close(log);
  if (prepare != nullptr) prepare();
  execv(program.c_str(), pointers.data());
  _exit(127);
}

int StartedRun::Run(const std::vector<std::string>& arguments,
                    const std::function<void()>& prepare) {
  Start(arguments, prepare);
  return ExitCode();
}

std::string StartedRun::Output() const {
  std::istringstream words(ReadText(folder_ + "/planc.log"));
  std::string text;
  for (std::string word; words >> word;) absl::StrAppend(&text, word, " ");
  return text;
}

int64_t StartedRun::RowsOfMetrics() const {
  int64_t rows = 0;
  for (const char letter : ReadText(folder_ + "/run/metrics.jsonl")) rows += letter == '\n' ? 1 : 0;
  return rows;
}

int64_t StartedRun::StepsSaved() const {
  const std::vector<CheckpointEntry> checkpoints = ListCheckpoints(folder_ + "/saved");
  return checkpoints.empty() ? -1 : checkpoints.back().step;
}

bool StartedRun::Await(const std::function<bool()>& holds) const {
  while (!holds()) {
    siginfo_t ended{};
    waitid(P_PID, process_, &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) return holds();
    absl::SleepFor(absl::Microseconds(500));
  }
  return true;
}

int StartedRun::ExitCode() {
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace planc
