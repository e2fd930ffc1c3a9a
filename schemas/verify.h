#ifndef PLANC_SCHEMAS_VERIFY_H_
#define PLANC_SCHEMAS_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// One broken promise of a plan.
struct Violation {
  std::string rule;  // short name of the broken rule, e.g. "bounds", "overlap", "order", "deadlock"
  std::string
      message;  // names rank class, program, call, instruction, buffer, and for deadlocks the cycle
};

// What was proven, for the reader of the plan.
struct Certificate {
  int64_t instructions = 0;  // instructions executed symbolically, over all rank classes
  int64_t collectives = 0;
  int64_t transfers = 0;
  // Accesses by instructions to an operand, scratch included, of each of which it was proven that
  // every earlier access of the same bytes that it could race with comes before it.
  int64_t order_checks = 0;
};

struct VerifyResult {
  std::vector<Violation> violations;  // empty: the plan is safe
  Certificate certificate;
};

// Proves that the plan cannot deadlock, access memory out of bounds or out of order, or miss a
// reduction. Shares no code with the compiler's passes. Never crashes on any Plan value.
VerifyResult VerifyPlan(const Plan& plan);

}  // namespace planc

#endif  // PLANC_SCHEMAS_VERIFY_H_
