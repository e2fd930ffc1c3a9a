#ifndef PLANC_PLANC_RESUME_BEFORE_RUN_H_
#define PLANC_PLANC_RESUME_BEFORE_RUN_H_

#include <optional>
#include <ostream>
#include <string>

#include "planc/load_plan.h"

namespace planc {

// A path of the command line, made absolute: it starts from the current directory, unlike a path in
// a job. The words `auto` and `never` stay.
std::string ResumePath(const std::string& value);

// What `planc check --resume` says, before a run starts a rank or replaces a file. `resume_from` is
// the value of --resume through ResumePath, if it was given; a folder of checkpoints becomes the
// one checkpoint that is taken. `base` is what relative paths of the job start from. `input` is the
// job or plan file. Returns kExitOk, or after writing the reasons to `err`: kExitJobError for a
// checkpoint that is absent or of another job, kExitTrainingFault where all are damaged.
int CheckResumeBeforeRun(const std::string& input, const LoadedPlan& loaded,
                         const std::string& base, std::optional<std::string>* resume_from,
                         std::ostream& err);

}  // namespace planc

#endif  // PLANC_PLANC_RESUME_BEFORE_RUN_H_
