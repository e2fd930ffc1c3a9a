// Which forward operation a gradient belongs to. The gradient of a sum is the gradient of each of
// its terms, and of a biased value the gradient of the value, so gradients are followed through
// these.
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

// Sums and biases on the way from a result to the product they were added to.
constexpr int kThrough = 4;

int PassedThrough(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return 2;
    case Opcode::kBiasForward:
    case Opcode::kPositionForward:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

bool Executor::IsComplete(const Value& gradient) {
  const Definition* definition = definitions_.Find(gradient.adjoint);
  return definition != nullptr && gradient.terms == definition->uses;
}

// Where values of the same kind were added one after another, as two biases, each gradient that is
// taken belongs to another one of them: those that have theirs are passed by.
Definition* Executor::FindThrough(uint64_t hash, Opcode opcode, int limit) {
  Definition* const definition = definitions_.Find(hash);
  if (definition == nullptr) return nullptr;
  const int through = PassedThrough(definition->opcode);
  if (definition->opcode == opcode && !(definition->credited && through > 0)) return definition;
  if (limit == 0) return nullptr;
  for (int i = through; i-- > 0;) {
    // The gradient of a term used elsewhere too is not complete with this sum.
    const Definition* term = definitions_.Find(definition->inputs[i]);
    if (term == nullptr || term->uses != 1) continue;
    Definition* const found = FindThrough(definition->inputs[i], opcode, limit - 1);
    if (found != nullptr) return found;
  }
  return nullptr;
}

Definition* Executor::Trace(const Site& site, const Value& dy, Opcode opcode) {
  if (dy.kind != ValueKind::kTensor || dy.adjoint == 0) {
    Bad(site, "gradient", "gets a tensor that is no gradient");
    return nullptr;
  }
  if (!IsComplete(dy)) {
    Bad(site, "gradient", "gets a gradient that lacks or repeats a contribution");
    return nullptr;
  }
  Definition* const definition = FindThrough(dy.adjoint, opcode, kThrough);
  if (definition == nullptr) {
    Bad(site, "gradient",
        "gets the gradient of another tensor than the result of its forward operation");
  }
  return definition;
}

bool Executor::ReachesThrough(uint64_t hash, uint64_t target, int limit) {
  const Definition* definition = definitions_.Find(hash);
  if (definition == nullptr || limit == 0) return false;
  for (int i = PassedThrough(definition->opcode); i-- > 0;) {
    if (definition->inputs[i] == target) return true;
    const Definition* term = definitions_.Find(definition->inputs[i]);
    if (term != nullptr && term->uses == 1 &&
        ReachesThrough(definition->inputs[i], target, limit - 1)) {
      return true;
    }
  }
  return false;
}

// How many uses of `target` the gradient accounts for when it is taken for the gradient of
// `target`; 0 when it cannot be.
int Executor::TermsToward(const Value& gradient, uint64_t target) {
  if (gradient.adjoint == 0) return 0;
  if (gradient.adjoint == target) return gradient.terms;
  return IsComplete(gradient) && ReachesThrough(gradient.adjoint, target, kThrough) ? 1 : 0;
}

}  // namespace planc::verifying
