#ifndef PLANC_TESTS_MUTATION_MUTATION_PLANS_H_
#define PLANC_TESTS_MUTATION_MUTATION_PLANS_H_

#include <string>
#include <vector>

#include "schemas/plan.h"
#include "tests/mesh_cases.h"

namespace planc {

// The plans that are spoiled: those of AllMeshCases, then variants of them that differ in what no
// mesh case has: number formats, clipping, validation, nodes, hyperparameters.
const std::vector<MeshCase>& MutationCases();

}  // namespace planc

#endif  // PLANC_TESTS_MUTATION_MUTATION_PLANS_H_
