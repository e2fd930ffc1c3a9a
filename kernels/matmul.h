#ifndef PLANC_KERNELS_MATMUL_H_
#define PLANC_KERNELS_MATMUL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// One matrix product C[m, n] = op(A) op(B), or C += op(A) op(B) when `accumulate` is set.
//
// op(A) is [m, k] and op(B) is [k, n]. A transposed operand is stored the other way round: A as
// [k, m], B as [n, k]. All matrices are row-major. The products of one training step:
//   y[T, N]  = x[T, K] W[N, K]^T    m=T n=N k=K, transpose_b  (weights stored [out, in])
//   dx[T, K] = dy[T, N] W[N, K]     m=T n=K k=N
//   dW[N, K] += dy[T, N]^T x[T, K]  m=N n=K k=T, transpose_a, accumulate
//
// A and B have one type, f32 or bf16. C is f32 or bf16; f32 operands require an f32 C.
// Everything is summed in fp32; a bf16 C is rounded once (to nearest even), after the addition of
// its old value when accumulating.
struct MatmulShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  DType a = DType::kF32;
  DType b = DType::kF32;
  DType c = DType::kF32;
  bool accumulate = false;
  // Elements from one stored row to the next, for column slices of wider matrices; 0 means
  // contiguous (the number of stored columns).
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
};

// Text such as "1024x4096x512 bf16*bf16^T+=f32", for error messages and profiles.
std::string MatmulShapeText(const MatmulShape& shape);

// Bytes of workspace that Run needs; at most 16 MiB. A function of the shape alone, never of the
// machine or the number of threads, because it is written into plans.
int64_t MatmulWorkspaceBytes(const MatmulShape& shape);

// Who computes the product.
enum class MatmulImplementation {
  // oneDNN where it has a kernel for these types that works inside the planned workspace and
  // allocates nothing by itself; planc's packed kernel otherwise.
  kAutomatic,
  kOneDnn,  // oneDNN, even where it allocates internally; an error where it has no kernel.
  kPacked,  // kernels/packed_matmul.h
};

// A product prepared once, at session start, and run any number of times.
//
// Run allocates nothing (except inside oneDNN, where kOneDnn was forced). Its result depends on
// the shape, on the machine's vector extensions and on `threads`, and on nothing else; the packed
// kernel's result does not depend on `threads` either.
class Matmul {
 public:
  virtual ~Matmul() = default;

  // Fails with InvalidArgument for impossible shapes and unsupported types, and with
  // ResourceExhausted where a forced oneDNN wants more scratch than MatmulWorkspaceBytes(shape).
  static absl::StatusOr<std::unique_ptr<Matmul>> Create(
      const MatmulShape& shape, int threads,
      MatmulImplementation implementation = MatmulImplementation::kAutomatic);

  // Computes C from A and B. The operands must not overlap C.
  // REQUIRES: context.workspace_bytes >= MatmulWorkspaceBytes(shape()); the workspace is aligned
  // to 64 bytes; context.threads is the `threads` of Create.
  virtual void Run(const void* a, const void* b, void* c, KernelContext& context) = 0;

  // The kernel behind this product: "packed", or "onednn " and its name there.
  virtual std::string implementation() const = 0;

  const MatmulShape& shape() const { return shape_; }

 protected:
  explicit Matmul(const MatmulShape& shape) : shape_(shape) {}

 private:
  MatmulShape shape_;  // Leading dimensions filled in.
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_MATMUL_H_
