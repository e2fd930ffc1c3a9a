#ifndef PLANC_RUNTIME_PROCESS_GROUP_ORDERED_REDUCE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_ORDERED_REDUCE_H_

#include <cstdint>

#include "runtime/process_group/process_group.h"
#include "schemas/dtype.h"

namespace planc {

// Whether OrderedReduce knows the dtype: f32, bf16, f64.
bool IsReducible(DType dtype);

// out[i] = ((x0[i] + x1[i]) + x2[i]) + ..., or the maximum, over `inputs` arrays of `count`
// elements in that order. bf16 is added in f32 and rounded once; a maximum is NaN when any input
// is. `out` is disjoint from every input or the same array as one of them. REQUIRES:
// IsReducible(dtype), members >= 1.
void OrderedReduce(ReduceOp op, DType dtype, const void* const* inputs, int64_t members, void* out,
                   int64_t count);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_ORDERED_REDUCE_H_
