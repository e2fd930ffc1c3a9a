// A planc process that a test starts, signals and waits for.
#ifndef PLANC_TESTS_STARTED_RUN_H_
#define PLANC_TESTS_STARTED_RUN_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace planc {

// A folder of its own for each test, with a job of one or more ranks and its data.
class StartedRun {
 public:
  // Empties `folder`, and writes train.txt and job.yaml there. `mesh`: "dp_shard: 4"; `run`,
  // `more`: what to add to the section `run`, and lines of YAML. Relative paths of the job begin in
  // the folder; checkpoints go to `saved`, everything else to `run`.
  StartedRun(const std::string& folder, int ranks, const std::string& mesh, const std::string& run,
             const std::string& more);
  ~StartedRun();
  StartedRun(const StartedRun&) = delete;
  StartedRun& operator=(const StartedRun&) = delete;

  // Starts planc in the folder. `prepare` is called in the new process, whose output already goes
  // to planc.log.
  void Start(const std::vector<std::string>& arguments,
             const std::function<void()>& prepare = nullptr);
  // The same, and waits; returns the exit code.
  int Run(const std::vector<std::string>& arguments,
          const std::function<void()>& prepare = nullptr);

  pid_t process() const { return process_; }
  const std::string& folder() const { return folder_; }
  // What it printed so far, each run of blanks and ends of lines as one blank.
  std::string Output() const;
  int64_t RowsOfMetrics() const;
  // Steps of the newest complete checkpoint in `saved`; -1: there is none.
  int64_t StepsSaved() const;

  // Waits until that holds. False when the process ends first.
  bool Await(const std::function<bool()>& holds) const;
  // Waits for the end; 128 + the signal when one ended it.
  int ExitCode();

 private:
  const std::string folder_;
  pid_t process_ = -1;
};

}  // namespace planc

#endif  // PLANC_TESTS_STARTED_RUN_H_
