#ifndef PLANC_PLANC_COMMAND_SHARDS_H_
#define PLANC_PLANC_COMMAND_SHARDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/plan.h"

namespace planc {

// One tensor of the model: a Parameter, at one layer where it exists once for each.
struct NamedParameter {
  std::string name;
  int index = 0;   // Plan::params
  int layer = -1;  // -1 when the parameter is not about a layer
};

// All of them, in the order of Plan::params, each with its layers.
std::vector<NamedParameter> AllParameters(const Plan& plan);

// The parameters called `pattern`, e.g. model.layers.3.mlp.up_proj.weight, of which `.weight` may
// be left out. `*` stands for any characters, `?` for one, `[0-3]` for one of these. Errors:
// NotFound, with the nearest name, or names that contain it, or the layers that there are.
absl::StatusOr<std::vector<NamedParameter>> FindParameters(const Plan& plan,
                                                           const std::string& pattern);

// Where elements lie in the memory of one rank.
struct Location {
  std::string buffer;
  MemoryKind arena = MemoryKind::kWeights;
  int64_t offset = 0;  // bytes from the start of the arena
  int64_t bytes = 0;
};

// What one rank holds of a parameter.
struct ParameterShard {
  int64_t rank = 0;
  std::vector<int64_t> box_begin;  // of the tp rank's part of the whole tensor, per dimension
  std::vector<int64_t> box_end;    // exclusive; padding is left out
  int64_t master_begin = 0;        // elements of the flattened, padded tp part that the rank's
  int64_t master_end = 0;          // master weights and moments cover; empty when equal
  Location master;
  Location compute;  // the whole tp part in the compute dtype; no buffer when gathered for each use
};

// The shards of all ranks of every stage that holds the parameter, by rank.
std::vector<ParameterShard> ShardsOf(const Plan& plan, const NamedParameter& parameter);

// One collective that the gradient of the parameter passes, in program order.
struct GradientReduction {
  Opcode opcode = Opcode::kAllReduce;
  int group = 0;
  friend bool operator==(const GradientReduction&, const GradientReduction&) = default;
};
std::vector<GradientReduction> ReductionsOf(const Plan& plan, const NamedParameter& parameter);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_SHARDS_H_
