#ifndef PLANC_RUNTIME_STEP_SHARD_VIEW_H_
#define PLANC_RUNTIME_STEP_SHARD_VIEW_H_

#include <cstdint>

namespace planc {

// This rank's part of the training state of one unit (of one layer): elements begin ..
// begin + count - 1 of the unit on this rank's tensor-parallel coordinate.
struct ShardView {
  int unit = 0;               // Plan::units
  int layer = -1;             // model layer, -1 for a unit that is not per layer
  float* master = nullptr;    // [count] master weights
  float* m = nullptr;         // [count] first Adam moment
  float* v = nullptr;         // [count] second Adam moment
  float* snapshot = nullptr;  // [3][count] where master, m and v are copied to; null: nowhere
  int64_t begin = 0;          // elements from the start of the unit
  int64_t count = 0;          // elements
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_SHARD_VIEW_H_
