#ifndef PLANC_SCHEMAS_VERIFY_REPORT_H_
#define PLANC_SCHEMAS_VERIFY_REPORT_H_

#include <string>
#include <utility>

#include "schemas/verify.h"

namespace planc::verifying {

// Collects violations up to a limit; checks stop early once it is reached.
class Report {
 public:
  explicit Report(VerifyResult* result) : result_(result) {}

  void Add(std::string rule, std::string message) {
    if (!full()) result_->violations.push_back({std::move(rule), std::move(message)});
  }
  bool ok() const { return result_->violations.empty(); }
  bool full() const { return result_->violations.size() >= kLimit; }
  Certificate& certificate() { return result_->certificate; }

 private:
  static constexpr size_t kLimit = 20;
  VerifyResult* result_;
};

// Instructions that a plan may execute, over all programs and classes, to be worth verifying.
inline constexpr int64_t kMaxInstructions = int64_t{1} << 24;
// Cells of memory that the verifier keeps a state for, over all classes.
inline constexpr int64_t kMaxCells = int64_t{1} << 24;
// Accesses of cells, over the whole execution.
inline constexpr int64_t kMaxAccesses = int64_t{1} << 30;
// Looks at the heads of streams while the programs are simulated.
inline constexpr int64_t kMaxLooks = int64_t{1} << 32;
// No number of a plan (bytes, elements, sizes) may be larger.
inline constexpr int64_t kMaxNumber = int64_t{1} << 56;

// a * b and a + b of non-negative numbers; kMaxNumber when larger.
inline int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kMaxNumber) return kMaxNumber;
  return product;
}
inline int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > kMaxNumber) return kMaxNumber;
  return sum;
}

// Checks that look at the plan as it is written, without executing it. Each presumes that the
// earlier ones found nothing.
//
// Every index, enumerator and count is in range; mesh, groups, pools, buffers, blocks, classes and
// programs are well formed; pools do not overlap in their arenas.
void CheckStructure(const Plan& plan, Report& report);
// Programs expand to a bounded number of calls whose blocks, slots, layers and microbatches exist.
void CheckPrograms(const Plan& plan, Report& report);
// Every instruction touches exactly the bytes that its attributes imply, inside its buffers, on
// every coordinate of dp_shard, with operands of the right types.
void CheckBounds(const Plan& plan, Report& report);
// Stages hold every layer once, units hold every parameter once, and the numbers that the job
// fixes (sizes, loss scale, epsilon, clipping) are those of the job.
void CheckTraining(const Plan& plan, Report& report);
// The parameters are those of the model that the job names: names, shapes, splits, initial values.
void CheckModel(const Plan& plan, Report& report);
// Activations, gradients and states have the types that the job names.
void CheckPrecision(const Plan& plan, Report& report);
// Costs of instructions are what their attributes and operands make them.
void CheckCosts(const Plan& plan, Report& report);

// "block layer_forward, instruction 3 (matmul)".
std::string Where(const Plan& plan, int block, int instruction);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_REPORT_H_
