#ifndef PLANC_PLANC_COMMAND_JOB_VALUE_H_
#define PLANC_PLANC_COMMAND_JOB_VALUE_H_

#include <string>

#include "compiler/spec/job_schema.h"
#include "schemas/job.pb.h"
#include "schemas/job_spec.h"

namespace planc {

// The value of a key as a job file spells it: "8", "bf16", "[0.9, 0.95]"; "unset" when it has none.
std::string ValueText(const proto::Job& job, const JobKey& key);

// Where a value came from: "job.yaml:12", "--set", "preset llama3.1-8b", "default", "derived".
std::string OriginText(const Origin& origin);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_JOB_VALUE_H_
