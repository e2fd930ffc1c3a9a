// How far a run of planc is from PyTorch in float64, and how far rounding may take it.
#ifndef PLANC_TESTS_PARITY_COMPARE_H_
#define PLANC_TESTS_PARITY_COMPARE_H_

#include <string>

#include "schemas/plan.h"
#include "tests/mesh_run.h"
#include "tests/parity/parity_case.h"

namespace planc {

// Brings the fixture's weights into `checkpoint` (a folder that is made), for `plan` to resume
// from; a failure of the test where that fails.
void ImportFixture(const ParityCase& one, const Plan& plan, const std::string& checkpoint);

// One step of a plan that resumes from such a checkpoint.
MeshRun RunParityCase(const ParityCase& one, const Plan& plan);

// The largest distance of a kind, and the tensor that has it.
struct TensorDistance {
  double distance = 0;
  std::string tensor;
};

// Distances between a run and the reference, or bounds of them.
struct Distances {
  double loss = 0;          // of the mean losses, nats
  double token_losses = 0;  // root mean square over all tokens, nats; 0 where they were not taken
  double grad_norm = 0;     // relative
  double clipped_norm = 0;  // of the norm of all clipped gradients to optimizer.clip_norm, relative
  TensorDistance gradients;  // clipped; |ours - theirs| / |theirs| of the worst tensor
  TensorDistance updates;    // of the weights' changes, likewise
};

// The change of every weight that the reference's gradients cause: clipping and the first step of
// AdamW, by the formula.
Tensors ExpectedChanges(const ParityReference& reference);

// REQUIRES: the run has no errors.
Distances DistancesBetween(const MeshRun& run, const ParityReference& reference);

// What rounding in the precision of the case may cause; see compare.cc.
Distances BoundsOf(const ParityCase& one, const ParityReference& reference);

// Each distance as a multiple of its bound: below 1 where parity holds, infinite where the distance
// is not finite.
Distances Excess(const Distances& distances, const Distances& bounds);
// The largest of them.
double Largest(const Distances& excess);

// Root mean square of the differences.
double TokenDistance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace planc

#endif  // PLANC_TESTS_PARITY_COMPARE_H_
