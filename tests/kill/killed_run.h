#ifndef PLANC_TESTS_KILL_KILLED_RUN_H_
#define PLANC_TESTS_KILL_KILLED_RUN_H_

#include <sys/types.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace planc {

// What was done to a run.
struct KillCounts {
  int kills = 0;
  int launcher = 0;          // of the launcher; the others hit one rank
  int during_write = 0;      // a checkpoint was being written
  int without_progress = 0;  // no new checkpoint since the kill before
  int starts = 0;            // of `planc run`, the first included

  std::string Text() const;
};

// A training run whose processes are killed at random moments.
class KilledRun {
 public:
  // `command`: argv of planc. `checkpoints`: the folder that the run writes them into. `log` gets
  // what it prints.
  KilledRun(std::vector<std::string> command, std::string checkpoints, std::string log,
            uint64_t seed);
  ~KilledRun();
  KilledRun(const KilledRun&) = delete;
  KilledRun& operator=(const KilledRun&) = delete;

  // Kills `kills` times, starts `planc run` again whenever it has given up or was killed, and then
  // leaves it alone. Returns the exit code of the last start.
  int Run(int kills, int64_t ranks);

  const KillCounts& counts() const { return counts_; }

 private:
  void Start();
  // Whether `planc run` is still there; reaps it when it is not.
  bool Alive();
  // Waits until as many ranks as that run, none of which has been aimed at before. False when
  // `planc run` ended first.
  bool AwaitRanks(int64_t ranks);
  // Waits for a random moment: a short time, some checkpoints, or the middle of a write. False when
  // `planc run` ended first.
  bool AwaitMoment();
  void KillOne();
  int64_t Uniform(int64_t low, int64_t high);

  const std::vector<std::string> command_;
  const std::string checkpoints_;
  const std::string log_;
  std::mt19937_64 random_;
  KillCounts counts_;
  pid_t launcher_ = -1;
  int exit_code_ = -1;
  std::vector<pid_t> aimed_at_;  // the ranks at the last kill
  int64_t checkpoint_at_kill_ = -1;
};

}  // namespace planc

#endif  // PLANC_TESTS_KILL_KILLED_RUN_H_
