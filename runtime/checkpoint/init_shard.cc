#include "runtime/checkpoint/init_shard.h"

#include <algorithm>
#include <vector>

#include "kernels/philox.h"
#include "runtime/checkpoint/shard_boxes.h"

namespace planc {
namespace {

// Fills a box whose elements are normal values, run by run along the last dimension.
void FillBoxNormal(const Parameter& parameter, const Box& box, const host::PhiloxKey& key,
                   float* out) {
  const float stddev = static_cast<float>(parameter.init_std);
  const int64_t run = box.shape.back();
  const int64_t runs = BoxElements(box) / run;
  std::vector<int64_t> at = box.offset;  // first element of the current run
  for (int64_t r = 0; r < runs; ++r) {
    int64_t index = 0;
    for (size_t d = 0; d < at.size(); ++d) index = index * parameter.shape[d] + at[d];
    host::FillNormal(key, static_cast<uint64_t>(index), run, stddev, out + r * run);
    for (size_t d = at.size() - 1; d-- > 0;) {
      if (++at[d] < box.offset[d] + box.shape[d]) break;
      at[d] = box.offset[d];
    }
  }
}

}  // namespace

void InitShard(const Plan& plan, int unit, int layer, int64_t tp, int64_t begin, int64_t count,
               uint64_t seed, float* out) {
  std::fill_n(out, count, 0.0f);
  for (const UnitBox& piece : ShardBoxes(plan, unit, tp, begin, count)) {
    const Parameter& parameter = plan.params[piece.parameter];
    float* const values = out + (piece.unit_begin - begin);
    if (parameter.ones) {
      std::fill_n(values, BoxElements(piece.box), 1.0f);
    } else if (parameter.init_std > 0) {
      const host::PhiloxKey key = host::MakePhiloxKey(seed, ParameterName(parameter.name, layer));
      FillBoxNormal(parameter, piece.box, key, values);
    }
  }
}

}  // namespace planc
