// Small plans for tests of what a rank holds.
#ifndef PLANC_RUNTIME_CHECKPOINT_TEST_PLAN_H_
#define PLANC_RUNTIME_CHECKPOINT_TEST_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// A plan of a model with 3 layers, a vocabulary of 13 (padded to a multiple of tp), a tied table,
// and tensors split over tp along dimension 0, along dimension 1 and not at all; without programs.
// Stages take the layers in turn; the last stage holds the table as well.
Plan CheckpointTestPlan(int64_t pp, int64_t dp_replicate, int64_t dp_shard, int64_t tp);

// Where an element of a unit belongs, found by counting rather than by cutting boxes.
struct ElementPlace {
  int parameter = -1;  // -1: padding
  int64_t index = 0;   // row-major, in the whole parameter
};
ElementPlace PlaceOf(const Plan& plan, int unit, int64_t tp, int64_t element);

// Master weights and moments of one rank, and room for a snapshot where checkpoint.async is true.
class TestShards {
 public:
  TestShards(const Plan& plan, int64_t rank);
  std::vector<ShardView> Views();

 private:
  struct Storage {
    ShardView view;
    std::vector<float> master, m, v, snapshot;
  };
  std::vector<Storage> storage_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_TEST_PLAN_H_
