#ifndef PLANC_RUNTIME_CHECKPOINT_DATA_CHANGES_H_
#define PLANC_RUNTIME_CHECKPOINT_DATA_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/data/data_identity.h"
#include "runtime/data/data_position.h"
#include "schemas/job.pb.h"

namespace planc {

// Compares the files of `then` with those of the job, whose relative paths start from `directory`,
// and adds to `check` what differs, as changes of data.train and data.validation. Other training
// data are noticed, and refused in a run that is started again (`in_run`), unless they are allowed.
// Data that begin with those of before are noticed. Does nothing when `then` is null.
// Errors: as TokenStream::Open.
absl::Status AddDataChanges(const DataIdentity* then, const proto::Job& job,
                            const std::string& directory, bool in_run, ResumeCheck* check);

// What a checkpoint says of the data; as good as it can be known from one of before there was a
// position in it: all its steps had the batch of its job, and the data were those of now.
DataPosition PositionIn(const Manifest& manifest, int64_t tokens_now);

// Where a training with `job` goes on in its data, with `windows` and `tokens` of them, from a
// checkpoint; as GoOnFrom.
absl::StatusOr<DataPosition> PositionAfter(const Manifest& manifest, const proto::Job& job,
                                           DataChange change, int64_t tokens,
                                           std::vector<std::string>* notices);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_DATA_CHANGES_H_
