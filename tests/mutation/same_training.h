#ifndef PLANC_TESTS_MUTATION_SAME_TRAINING_H_
#define PLANC_TESTS_MUTATION_SAME_TRAINING_H_

#include <string>

#include "tests/mesh_run.h"

namespace planc {

// How a run compares with the run of the right plan: initial weights, losses, gradient norms,
// clipped gradients, validation loss and weights.
enum class Sameness {
  kBits,      // equal bit for bit
  kRounding,  // losses, norms and initial weights agree to 1e-5, each weight to 1e-5 of its tensor
  kDifferent
};

Sameness CompareRuns(const MeshRun& run, const MeshRun& right, std::string* difference);

}  // namespace planc

#endif  // PLANC_TESTS_MUTATION_SAME_TRAINING_H_
