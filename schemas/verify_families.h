#ifndef PLANC_SCHEMAS_VERIFY_FAMILIES_H_
#define PLANC_SCHEMAS_VERIFY_FAMILIES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc::verifying {

// What a model family is, described a second time, apart from the compiler: which tensors it has,
// and which function of tokens and tensors its logits are.

enum class Initial : uint8_t {
  kNormal,    // mean 0, deviation model.init_std
  kResidual,  // the same over sqrt(2 layers): what is added to the residual stream (GPT-2)
  kOnes,
  kZeros,
};

struct FamilyParameter {
  std::string name;  // in checkpoints; "{layer}" where every layer has one
  std::vector<int64_t> shape;
  int tp_dim = -1;  // the dimension that tensor parallelism splits, -1 for none
  Initial initial = Initial::kNormal;
  bool transposed = false;  // published files hold the transpose
};

// One operation on the way from tokens to logits, with the tensors it takes: of an operation with
// two weights, each has a list. Several names in a list are stacked along dimension 0.
struct FamilyStep {
  Opcode opcode = Opcode::kZero;
  std::array<std::vector<std::string>, 2> weights{};
};

// Every layer adds two branches to its input: x += attention(x), then x += mlp(x). Steps are in the
// order in which they are computed.
struct Family {
  std::vector<FamilyParameter> parameters;
  std::vector<FamilyStep> embedding;
  std::vector<FamilyStep> attention;
  std::vector<FamilyStep> mlp;
  std::vector<FamilyStep> head;
};

// The family of the model with its sizes; no parameters for a family that has no description.
Family FamilyOf(const proto::Model& model);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_FAMILIES_H_
