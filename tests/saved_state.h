#ifndef PLANC_TESTS_SAVED_STATE_H_
#define PLANC_TESTS_SAVED_STATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/mesh_run.h"

namespace planc {

// All tensors of a checkpoint, put together from its shards: "<parameter> <state>" to values.
// Errors: as ReadManifest and SavedTensors::Read.
absl::StatusOr<Tensors> ReadSavedState(const std::string& checkpoint);

// Names of tensors that are not the same in both, bit for bit.
std::vector<std::string> DifferingTensors(const Tensors& a, const Tensors& b);

}  // namespace planc

#endif  // PLANC_TESTS_SAVED_STATE_H_
