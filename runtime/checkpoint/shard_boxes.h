#ifndef PLANC_RUNTIME_CHECKPOINT_SHARD_BOXES_H_
#define PLANC_RUNTIME_CHECKPOINT_SHARD_BOXES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// A rectangular part of a whole parameter: elements offset[d] .. offset[d] + shape[d] - 1 of each
// dimension d.
struct Box {
  std::vector<int64_t> offset;
  std::vector<int64_t> shape;
  friend bool operator==(const Box&, const Box&) = default;
};

// Product of the box's sizes.
int64_t BoxElements(const Box& box);
// The common part of two boxes of one tensor; a box of no elements when there is none.
Box Intersect(const Box& a, const Box& b);

// A box that lies contiguously, row-major, in a unit.
struct UnitBox {
  int parameter = 0;       // Plan::params
  Box box;                 // in the whole, unpadded parameter
  int64_t unit_begin = 0;  // first element, counted from the start of the unit on one tp rank
};

// Where elements [begin, begin + count) of a unit on tensor-parallel rank `tp` belong: boxes that
// cover each of these elements once, except padding, ordered by unit_begin.
std::vector<UnitBox> ShardBoxes(const Plan& plan, int unit, int64_t tp, int64_t begin,
                                int64_t count);

// Whether `rank` is the one that writes its shard of `unit` into a checkpoint: its dp_replicate and
// cp coordinates are 0, so is tp where the unit is the same on all of tp, and no stage before holds
// the unit.
bool WritesUnit(const Plan& plan, int64_t rank, int unit);
// Whether `rank` writes a shard of any unit.
bool WritesAnything(const Plan& plan, int64_t rank);

// `name` with `{layer}` replaced by the number.
std::string ParameterName(const std::string& name, int layer);

// Calls `visit` with the full name of every tensor of the model, in the order of Plan::params, then
// of the layers.
void ForEachTensor(const Plan& plan,
                   const std::function<void(const std::string&, const Parameter&)>& visit);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_SHARD_BOXES_H_
