#ifndef PLANC_RUNTIME_CHECKPOINT_JOB_JSON_H_
#define PLANC_RUNTIME_CHECKPOINT_JOB_JSON_H_

#include "absl/status/statusor.h"
#include "runtime/checkpoint/json_fields.h"
#include "schemas/job.pb.h"

namespace planc {

// A job as Protocol Buffers write it in JSON, with the names of the job file. Errors: Internal.
absl::StatusOr<Json> JobJson(const proto::Job& job);
// Reads it back; false when it is not a job.
bool ReadJobJson(const Json& json, proto::Job* job);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_JOB_JSON_H_
