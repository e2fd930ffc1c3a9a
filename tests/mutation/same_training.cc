#include "tests/mutation/same_training.h"

#include <algorithm>
#include <cmath>

namespace planc {
namespace {

constexpr double kBound = 1e-5;

Sameness CompareNumbers(double a, double b) {
  if (a == b) return Sameness::kBits;
  // A number that is no number compares as false.
  return std::abs(a - b) <= kBound * std::abs(b) ? Sameness::kRounding : Sameness::kDifferent;
}

// Distance in the Euclidean norm.
Sameness CompareTensors(const std::vector<float>& a, const std::vector<float>& b) {
  if (a == b) return Sameness::kBits;
  if (a.size() != b.size()) return Sameness::kDifferent;
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference) <= kBound * std::sqrt(norm) ? Sameness::kRounding
                                                           : Sameness::kDifferent;
}

}  // namespace

Sameness CompareRuns(const MeshRun& run, const MeshRun& right, std::string* difference) {
  Sameness worst = Sameness::kBits;
  const auto add = [&](Sameness sameness, const std::string& what) {
    if (sameness == Sameness::kDifferent && difference->empty()) *difference = what;
    worst = std::max(worst, sameness);
  };
  if (!run.errors.empty()) add(Sameness::kDifferent, run.errors.front());
  for (size_t i = 0; i < right.losses.size(); ++i) {
    add(CompareNumbers(run.losses[i], right.losses[i]), "loss");
    add(CompareNumbers(run.grad_norms[i], right.grad_norms[i]), "gradient norm");
  }
  add(CompareNumbers(run.eval_loss, right.eval_loss), "validation loss");
  if (run.initial_weights != right.initial_weights) add(Sameness::kDifferent, "initial weights");
  for (const auto tensors : {&MeshRun::first_gradients, &MeshRun::weights}) {
    if ((run.*tensors).size() != (right.*tensors).size()) add(Sameness::kDifferent, "tensors");
    for (const auto& [name, tensor] : right.*tensors) {
      const auto found = (run.*tensors).find(name);
      add(found == (run.*tensors).end() ? Sameness::kDifferent
                                        : CompareTensors(found->second, tensor),
          name);
    }
  }
  return worst;
}

}  // namespace planc
