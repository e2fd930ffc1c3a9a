#ifndef PLANC_PLANC_SAMPLING_LANGUAGE_MODEL_H_
#define PLANC_PLANC_SAMPLING_LANGUAGE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"
#include "schemas/job.pb.h"
#include "schemas/plan.h"

namespace planc {

// The job that evaluates one sequence of `sequence` tokens on one rank in fp32: the same model and
// nothing else of `job`.
proto::Job EvaluationJob(const proto::Job& job, int64_t sequence);

// A trained model, evaluated by the eval program of a one-rank plan of its own job: the same blocks
// and kernels that computed its validation loss.
class LanguageModel {
 public:
  // Loads a checkpoint, saved on any mesh. `sequence`: most tokens that Logits looks back at; the
  // job's own sequence length where that is less. Errors: as LoadCheckpoint; Internal when the plan
  // is not safe or does not keep its logits.
  static absl::StatusOr<std::unique_ptr<LanguageModel>> Load(const std::string& checkpoint,
                                                             int64_t sequence, int threads);

  // The logits of the token that follows `tokens`, [vocab], valid until the next call; looks at the
  // last sequence() tokens. REQUIRES: `tokens` is not empty, all are below vocab().
  absl::StatusOr<const float*> Logits(const std::vector<int32_t>& tokens);

  int64_t sequence() const { return plan_.job.batch().sequence(); }
  int64_t vocab() const { return plan_.job.model().vocab(); }

 private:
  LanguageModel() = default;
  absl::Status Prepare(const std::string& checkpoint, int threads);
  // Finds the logits in the eval program, and that nothing overwrites them.
  absl::Status FindLogits();

  Plan plan_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<ProgramRunner> runner_;
  const float* logits_ = nullptr;  // [sequence, row_]
  int64_t row_ = 0;                // logits of one token, padded
};

}  // namespace planc

#endif  // PLANC_PLANC_SAMPLING_LANGUAGE_MODEL_H_
