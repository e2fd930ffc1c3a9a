#include "kernels/matmul.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/amx_matmul.h"
#include "kernels/onednn_matmul.h"
#include "kernels/packed_matmul.h"
#include "schemas/status.h"

namespace planc::host {
namespace {

int64_t DefaultTo(int64_t given, int64_t otherwise) { return given == 0 ? otherwise : given; }

MatmulShape WithLeadingDimensions(MatmulShape shape) {
  shape.lda = DefaultTo(shape.lda, shape.transpose_a ? shape.m : shape.k);
  shape.ldb = DefaultTo(shape.ldb, shape.transpose_b ? shape.k : shape.n);
  shape.ldc = DefaultTo(shape.ldc, shape.n);
  return shape;
}

bool IsFloatType(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

absl::Status CheckShape(const MatmulShape& s) {
  if (s.m < 1 || s.n < 1 || s.k < 1) {
    return absl::InvalidArgumentError("m, n and k must be at least 1");
  }
  if (s.lda < (s.transpose_a ? s.m : s.k) || s.ldb < (s.transpose_b ? s.k : s.n) || s.ldc < s.n) {
    return absl::InvalidArgumentError(absl::StrCat("a leading dimension (", s.lda, ", ", s.ldb,
                                                   ", ", s.ldc, ") is shorter than its row"));
  }
  if (s.a != s.b || !IsFloatType(s.a) || !IsFloatType(s.c)) {
    return absl::InvalidArgumentError("operands must both be f32 or both be bf16");
  }
  if (s.a == DType::kF32 && s.c != DType::kF32) {
    return absl::InvalidArgumentError("the product of f32 operands must be f32");
  }
  return absl::OkStatus();
}

}  // namespace

std::string MatmulShapeText(const MatmulShape& shape) {
  return absl::StrCat(shape.m, "x", shape.n, "x", shape.k, " ", DTypeName(shape.a),
                      shape.transpose_a ? "^T" : "", "*", DTypeName(shape.b),
                      shape.transpose_b ? "^T" : "", shape.accumulate ? "+=" : "=",
                      DTypeName(shape.c));
}

int64_t MatmulWorkspaceBytes(const MatmulShape& shape) {
  // At least one thread's blocks of the packed kernel, at most the blocks of several threads: room
  // for fp32 copies of all three matrices, up to a limit.
  constexpr int64_t kLimit = int64_t{16} << 20;
  const int64_t copies = 4 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  return std::max(PackedMatmulWorkspaceBytes(shape), std::min(copies, kLimit));
}

absl::StatusOr<std::unique_ptr<Matmul>> Matmul::Create(const MatmulShape& shape, int threads,
                                                       InstructionSet instruction_set,
                                                       MatmulImplementation implementation) {
  const MatmulShape full = WithLeadingDimensions(shape);
  const std::string context = absl::StrCat("matmul ", MatmulShapeText(full));
  PLANC_RETURN_IF_ERROR(WithContext(CheckShape(full), context));
  if (threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(context, ": threads must be at least 1"));
  }
  if (implementation == MatmulImplementation::kOneDnn) {
    absl::StatusOr<std::unique_ptr<Matmul>> matmul = MakeOneDnnMatmul(full, threads);
    if (!matmul.ok()) return WithContext(matmul.status(), context);
    return matmul;
  }
  if (implementation == MatmulImplementation::kAutomatic && full.a == DType::kBF16 &&
      instruction_set == InstructionSet::kAmxBf16) {
    return MakeAmxMatmul(full);
  }
  return MakePackedMatmul(full);
}

}  // namespace planc::host
