#ifndef PLANC_PLANC_INIT_JOB_H_
#define PLANC_PLANC_INIT_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/job.pb.h"

namespace planc {

// What a new job file is for.
struct NewJob {
  std::vector<std::string> heading;  // lines of the comment at the top
  std::string name;                  // of the job: a folder name
  proto::Model model;  // with `preset`, or every size that an architecture has, max_sequence too
  int64_t gpus = 1;    // processes on device host
  std::string device;
  std::string resume = "auto";  // checkpoint.resume
};

// A commented job file that passes every rule, memory included: where all data-parallel shards with
// all activations kept do not fit, the fastest of the changes that do is taken. Data paths are
// placeholders. Errors: InvalidArgument for a device that is unknown and for a number of GPUs that
// is no multiple of 8 above 8; ResourceExhausted, naming a number that suffices, when no mesh of
// `gpus` fits; Internal when the text breaks a rule, with the diagnostics.
absl::StatusOr<std::string> NewJobText(const NewJob& request);

// `text` with whatever cannot stand in a job's name replaced: never empty.
std::string JobNameFrom(const std::string& text);

}  // namespace planc

#endif  // PLANC_PLANC_INIT_JOB_H_
