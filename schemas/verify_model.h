#ifndef PLANC_SCHEMAS_VERIFY_MODEL_H_
#define PLANC_SCHEMAS_VERIFY_MODEL_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schemas/verify_definitions.h"
#include "schemas/verify_families.h"

namespace planc::verifying {

// The function of the tokens that the job's model is, to hold the logits of a plan against.
class ModelFormula {
 public:
  // REQUIRES: CheckModel found nothing.
  explicit ModelFormula(const Plan& plan);

  // What is wrong with the tensor `logits`, as it is defined in `definitions`; empty when it is
  // what the model computes. `rope_table` is the hash of the table of the rotary embedding.
  std::string Differs(uint64_t logits, DefinitionTable& definitions,
                      const ParameterTable& parameters, uint64_t rope_table) const;

 private:
  struct Weight {
    int unit = -1;
    int64_t first_element = 0;
    int64_t elements = 0;
  };
  struct Step {
    Opcode opcode = Opcode::kZero;
    std::array<Weight, 2> weights{};
  };
  // Where a walk from the logits back to the tokens is.
  struct Walk;

  Weight Find(const std::vector<std::string>& names) const;
  std::vector<Step> Resolve(const std::vector<FamilyStep>& steps) const;
  bool Back(const std::vector<Step>& steps, int layer, Walk& walk) const;
  bool BackThroughBranch(const std::vector<Step>& steps, int layer, Walk& walk) const;

  const Plan& plan_;
  bool known_ = false;  // the plan says which model it trains
  int layers_ = 0;
  std::vector<Step> embedding_, attention_, mlp_, head_;
};

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_MODEL_H_
