// Reads any bytes as a plan file, and any body as one with a right checksum: no input may crash
// the reader, the check of the job inside, the verifier or the printer, and what is read is written
// back unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/spec/check_job.h"
#include "schemas/plan.h"
#include "schemas/plan_io.h"
#include "schemas/verify.h"

namespace planc {
namespace {

constexpr size_t kMostCalls = 10000;

void Check(bool condition) {
  if (!condition) std::abort();
}

size_t CallsIn(const Plan& plan) {
  size_t calls = 0;
  for (const RankClass& rank_class : plan.classes) {
    for (const Program& program : rank_class.programs) {
      for (const Repeat& repeat : program.steps) calls += repeat.calls.size();
    }
  }
  return calls;
}

void CheckOne(const std::string& bytes) {
  const absl::StatusOr<Plan> plan = ParsePlan(bytes);
  if (!plan.ok()) return;
  CheckResolvedJob(plan->job);
  VerifyPlan(*plan);
  if (CallsIn(*plan) < kMostCalls) PlanText(*plan);
  const absl::StatusOr<std::string> again = SerializePlan(*plan);
  Check(again.ok() && *again == bytes);
}

}  // namespace
}  // namespace planc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  planc::CheckOne(bytes);
  planc::CheckOne(planc::SealPlanBody(bytes));
  return 0;
}
