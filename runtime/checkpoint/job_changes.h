#ifndef PLANC_RUNTIME_CHECKPOINT_JOB_CHANGES_H_
#define PLANC_RUNTIME_CHECKPOINT_JOB_CHANGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schemas/job.pb.h"

namespace planc {

// What a resume does about a setting in which the job differs from the one that saved.
enum class ChangeVerdict {
  kRefused,  // of the model, the optimizer or the learning-rate schedule
  kAllowed,  // the same, listed in checkpoint.allow_changes
  kNoticed,  // shapes the loss curve otherwise: data, batch, seed, steps, compute precision
  kLayout,   // how the training is spread over ranks: losses are the same to rounding
};

struct JobChange {
  std::string key;    // "optimizer.lr"
  std::string saved;  // value in the checkpoint, as a job file spells it
  std::string now;    // value in the job
  ChangeVerdict verdict = ChangeVerdict::kNoticed;
};

// The settings that matter to a resume and differ, in the order of job.proto. `now` is the job that
// resumes, whose checkpoint.allow_changes counts; both jobs are fully resolved. model.preset is
// left out: it is a name for other keys. `step`: optimizer steps done where they part, if that is
// known: lr_schedule.decay_steps is then judged by what it does to the rate of the next step, and
// refused only when that is another by more than a tenth; without effect it is no change.
std::vector<JobChange> JobChanges(const proto::Job& saved, const proto::Job& now,
                                  std::optional<int64_t> step = std::nullopt);

// The same for a run that goes on from its own checkpoint because it is started again, not because
// a checkpoint was named: training data and seed are refused too unless they are allowed, because
// with others it is another run.
std::vector<JobChange> JobChangesInRun(const proto::Job& saved, const proto::Job& now,
                                       std::optional<int64_t> step = std::nullopt);

// "the learning rate of step 501 is 5.5e-04, and 1e-04 with the checkpoint's job"; empty where the
// rates are equal.
std::string RateChange(const proto::Job& saved, const proto::Job& now, int64_t step);

// "optimizer.lr is 0.003 in the checkpoint, 0.001 in the job".
std::string ChangeText(const JobChange& change);

// "dp_shard 2 tp 2 (4 ranks)": the axes above 1.
std::string MeshSizesText(const proto::Mesh& mesh);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_JOB_CHANGES_H_
