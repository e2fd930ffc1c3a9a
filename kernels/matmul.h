#ifndef PLANC_KERNELS_MATMUL_H_
#define PLANC_KERNELS_MATMUL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/context.h"
#include "kernels/instruction_set.h"
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

// Bytes of workspace that planc's own kernels need; at most 16 MiB. A function of the shape alone,
// never of the machine or the number of threads, because it is written into plans.
int64_t MatmulWorkspaceBytes(const MatmulShape& shape);

// Who computes the product.
enum class MatmulImplementation {
  // The fastest of planc's own kernels on the instruction set. oneDNN is never chosen: its order of
  // sums follows cache sizes, CPU maker and threads.
  kAutomatic,
  kPacked,  // kernels/packed_matmul.h
  // oneDNN, even where it allocates internally; an error where it has no kernel. For comparison,
  // with whatever instructions it finds on the machine.
  kOneDnn,
};

// A product prepared once, at session start, and run any number of times.
//
// Run allocates nothing (except inside oneDNN, where kOneDnn was forced). The result of planc's own
// kernels depends on the operands and on the class of bits of the instruction set, and on nothing
// else: neither on `threads` nor on the machine.
class Matmul {
 public:
  virtual ~Matmul() = default;

  // The product for `threads` threads with the instructions of `instruction_set`, which this
  // machine must have (DetectInstructionSet).
  // Fails with InvalidArgument for impossible shapes and unsupported types, and with Unimplemented
  // where a forced oneDNN has no optimised kernel.
  static absl::StatusOr<std::unique_ptr<Matmul>> Create(
      const MatmulShape& shape, int threads, InstructionSet instruction_set,
      MatmulImplementation implementation = MatmulImplementation::kAutomatic);

  // Computes C from A and B. The operands must not overlap C.
  // REQUIRES: context.workspace_bytes >= workspace_bytes(); the workspace is aligned to 64 bytes;
  // context.threads is the `threads` of Create.
  virtual void Run(const void* a, const void* b, void* c, KernelContext& context) = 0;

  // Bytes of workspace that Run needs: MatmulWorkspaceBytes(shape()) for planc's own kernels; of a
  // forced oneDNN what the library asks for on this machine, which may be more.
  virtual int64_t workspace_bytes() const { return MatmulWorkspaceBytes(shape_); }

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
