// Training state of test plans with known values, and ranks as threads.
#ifndef PLANC_RUNTIME_CHECKPOINT_TEST_STATE_H_
#define PLANC_RUNTIME_CHECKPOINT_TEST_STATE_H_

#include <barrier>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/save.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// Agreement between threads of this process.
class ThreadAgreement : public Agreement {
 public:
  explicit ThreadAgreement(int64_t ranks) : barrier_(ranks) {}

  absl::Status AllOk(const absl::Status& mine) override;
  absl::Status SameEverywhere(const std::string& what, const std::string& value) override;

 private:
  std::barrier<> barrier_;
  std::mutex mutex_;
  absl::Status verdict_;
  std::vector<std::string> values_;
};

// Runs `body(rank, agreement)` for every rank of the plan at once; returns rank 0's result. The
// results of all ranks must have the same code.
absl::Status OnAllRanks(const Plan& plan,
                        const std::function<absl::Status(int64_t, Agreement&)>& body);

int64_t TpOf(const Plan& plan, int64_t rank);

// Calls `visit(value&, expected)` for all elements of a rank, padding expected to be 0; `salt`
// tells checkpoints apart.
void VisitState(const Plan& plan, int64_t tp, const std::vector<ShardView>& views, int salt,
                const std::function<void(float&, float)>& visit);

// Saves a state of `salt` on every rank.
absl::Status SaveState(const Plan& plan, const std::string& directory, int64_t step, int salt,
                       const SaveOptions& options = {});

// Loads on every rank of `plan`. Errors: LoadCheckpoint's; OutOfRange when a value is not that of
// `salt`.
absl::Status LoadState(const Plan& plan, const std::string& checkpoint, int salt);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_TEST_STATE_H_
