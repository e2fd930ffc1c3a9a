#include "kernels/matmul.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

// The kernel of oneDNN, where one was asked for or is better than ours; null for ours.
absl::StatusOr<std::unique_ptr<Matmul>> TryOneDnn(const MatmulShape& shape, int threads,
                                                  bool forced) {
  absl::StatusOr<OneDnnMatmulOffer> offer = MakeOneDnnMatmul(shape, threads);
  if (!offer.ok()) {
    if (!forced && absl::IsUnimplemented(offer.status())) return nullptr;
    return offer.status();
  }
  const int64_t planned = MatmulWorkspaceBytes(shape);
  const bool fits = offer->scratch_bytes <= planned;
  if (forced && !fits) {
    return absl::ResourceExhaustedError(
        absl::StrCat(offer->matmul->implementation(), " wants ", offer->scratch_bytes,
                     " bytes of scratch; the planned workspace has ", planned));
  }
  if (!forced && !(fits && offer->keeps_to_scratch)) return nullptr;
  return std::move(offer->matmul);
}

}  // namespace

std::string MatmulShapeText(const MatmulShape& shape) {
  return absl::StrCat(shape.m, "x", shape.n, "x", shape.k, " ", DTypeName(shape.a),
                      shape.transpose_a ? "^T" : "", "*", DTypeName(shape.b),
                      shape.transpose_b ? "^T" : "", shape.accumulate ? "+=" : "=",
                      DTypeName(shape.c));
}

int64_t MatmulWorkspaceBytes(const MatmulShape& shape) {
  // At least one thread's blocks of the packed kernel, at most the blocks of several threads or
  // the scratch of oneDNN: room for fp32 copies of all three matrices, up to a limit.
  constexpr int64_t kLibraryLimit = int64_t{16} << 20;
  const int64_t copies = 4 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  return std::max(PackedMatmulWorkspaceBytes(shape), std::min(copies, kLibraryLimit));
}

absl::StatusOr<std::unique_ptr<Matmul>> Matmul::Create(const MatmulShape& shape, int threads,
                                                       MatmulImplementation implementation) {
  const MatmulShape full = WithLeadingDimensions(shape);
  const std::string context = absl::StrCat("matmul ", MatmulShapeText(full));
  PLANC_RETURN_IF_ERROR(WithContext(CheckShape(full), context));
  if (threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(context, ": threads must be at least 1"));
  }
  if (implementation != MatmulImplementation::kPacked) {
    const bool forced = implementation == MatmulImplementation::kOneDnn;
    absl::StatusOr<std::unique_ptr<Matmul>> matmul = TryOneDnn(full, threads, forced);
    if (!matmul.ok()) return WithContext(matmul.status(), context);
    if (*matmul != nullptr) return matmul;
  }
  return MakePackedMatmul(full);
}

}  // namespace planc::host
