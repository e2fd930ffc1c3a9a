#ifndef PLANC_RUNTIME_CHECKPOINT_INIT_SHARD_H_
#define PLANC_RUNTIME_CHECKPOINT_INIT_SHARD_H_

#include <cstdint>

#include "schemas/plan.h"

namespace planc {

// Writes the initial values of elements [begin, begin + count) of a unit, as the tensor-parallel
// rank `tp` stores it, to out[0 .. count - 1]. Values are a function of (seed, parameter name,
// element index in the whole parameter), so every mesh starts from the same weights: ones, zeros,
// or normal values of Parameter::init_std. Padding is zero. `layer` names the layer of a per-layer
// unit, -1 otherwise.
// REQUIRES: 0 <= begin, begin + count <= plan.units[unit].elements.
void InitShard(const Plan& plan, int unit, int layer, int64_t tp, int64_t begin, int64_t count,
               uint64_t seed, float* out);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_INIT_SHARD_H_
