#ifndef PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_SIZE_H_
#define PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_SIZE_H_

#include <cstdint>

#include "schemas/plan.h"

namespace planc {

// Bytes of tensors in one checkpoint; the headers of its files and its manifest come on top.
struct CheckpointSize {
  int64_t total_bytes = 0;         // written by all ranks
  int64_t largest_rank_bytes = 0;  // by the rank that writes most
  int64_t largest_node_bytes = 0;  // by the machine that writes most
  double write_seconds = 0;        // of that machine at cluster.storage_bandwidth
};

CheckpointSize CheckpointSizeOf(const Plan& plan);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_SIZE_H_
