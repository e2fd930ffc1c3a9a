// Elementwise operations and bias. Sums are formed in fp32 and rounded once to the stored type.
#ifndef PLANC_KERNELS_ELEMENTWISE_H_
#define PLANC_KERNELS_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// c = a + b. c may be a or b.
struct AddArgs {
  int64_t elements = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
};
void Add(const AddArgs& args, DType dtype, KernelContext& ctx);

// y[t] += bias for every row.
struct BiasForwardArgs {
  int64_t tokens = 0;          // T
  int64_t columns = 0;         // N
  const void* bias = nullptr;  // [N]
  void* y = nullptr;           // [T, N], +=
};
void BiasForward(const BiasForwardArgs& args, DType dtype, KernelContext& ctx);

// dbias += sum over rows of dy.
struct BiasBackwardArgs {
  int64_t tokens = 0;        // T
  int64_t columns = 0;       // N
  const void* dy = nullptr;  // [T, N]
  void* dbias = nullptr;     // [N], +=
  DType dbias_dtype = DType::kF32;
};
void BiasBackward(const BiasBackwardArgs& args, DType dtype, KernelContext& ctx);
size_t BiasBackwardWorkspaceBytes(int64_t tokens, int64_t columns);

// destination = source, converted (f32 or bf16 on either side). The two must not overlap, unless
// they are the same buffer with the same type.
struct CastArgs {
  int64_t elements = 0;
  const void* source = nullptr;
  DType source_dtype = DType::kF32;
  void* destination = nullptr;
  DType destination_dtype = DType::kF32;
};
void Cast(const CastArgs& args, KernelContext& ctx);

// destination += source (f32 or bf16 on either side).
struct AccumulateArgs {
  int64_t elements = 0;
  const void* source = nullptr;
  DType source_dtype = DType::kF32;
  void* destination = nullptr;  // +=
  DType destination_dtype = DType::kF32;
};
void Accumulate(const AccumulateArgs& args, KernelContext& ctx);

// x *= factor.
struct ScaleArgs {
  int64_t elements = 0;
  float factor = 1;
  void* x = nullptr;
};
void Scale(const ScaleArgs& args, DType dtype, KernelContext& ctx);

// Copies `columns` columns of each row between buffers of different row length (the value heads
// past the query and key norms). The two slices must not overlap.
struct CopyColumnsArgs {
  int64_t tokens = 0;  // T
  int64_t columns = 0;
  const void* x = nullptr;  // [T, x_stride], from column x_column on
  int64_t x_stride = 0;
  int64_t x_column = 0;
  void* y = nullptr;  // [T, y_stride], from column y_column on
  int64_t y_stride = 0;
  int64_t y_column = 0;
};
void CopyColumns(const CopyColumnsArgs& args, DType dtype, KernelContext& ctx);

// Sets `bytes` bytes to zero, which is 0 in every dtype.
void Zero(void* destination, size_t bytes, KernelContext& ctx);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ELEMENTWISE_H_
