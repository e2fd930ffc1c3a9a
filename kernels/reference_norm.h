// Plain RMSNorm and LayerNorm, one row at a time: what kernels/norm.h promises, written as the
// formulas are. S is float, or double where a test differentiates numerically.
#ifndef PLANC_KERNELS_REFERENCE_NORM_H_
#define PLANC_KERNELS_REFERENCE_NORM_H_

#include <cmath>
#include <cstdint>

namespace planc::reference {

// y [n] and the return value, rstd.
template <typename S>
S RmsNormRow(const S* x, const S* weight, int64_t n, S epsilon, S* y) {
  using std::sqrt;
  S squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  const S rstd = 1 / sqrt(squares / static_cast<S>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * rstd * weight[i];
  return rstd;
}

// dx = and dweight += of one row.
template <typename S>
void RmsNormRowBackward(const S* dy, const S* x, const S* weight, int64_t n, S rstd, S* dx,
                        S* dweight) {
  S product = 0;
  for (int64_t i = 0; i < n; ++i) product += dy[i] * weight[i] * x[i] * rstd;
  for (int64_t i = 0; i < n; ++i) {
    const S normalized = x[i] * rstd;
    dx[i] = rstd * (dy[i] * weight[i] - normalized * product / static_cast<S>(n));
    dweight[i] += dy[i] * normalized;
  }
}

template <typename S>
void LayerNormRow(const S* x, const S* weight, const S* bias, int64_t n, S epsilon, S* y, S* mean,
                  S* rstd) {
  using std::sqrt;
  S sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  *mean = sum / static_cast<S>(n);
  S squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - *mean) * (x[i] - *mean);
  *rstd = 1 / sqrt(squares / static_cast<S>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - *mean) * *rstd * weight[i] + bias[i];
}

// dx =, dweight += and dbias += of one row.
template <typename S>
void LayerNormRowBackward(const S* dy, const S* x, const S* weight, int64_t n, S mean, S rstd,
                          S* dx, S* dweight, S* dbias) {
  S gradient = 0;
  S product = 0;
  for (int64_t i = 0; i < n; ++i) {
    gradient += dy[i] * weight[i];
    product += dy[i] * weight[i] * (x[i] - mean) * rstd;
  }
  for (int64_t i = 0; i < n; ++i) {
    const S normalized = (x[i] - mean) * rstd;
    const S centered = dy[i] * weight[i] - gradient / static_cast<S>(n);
    dx[i] = rstd * (centered - normalized * product / static_cast<S>(n));
    dweight[i] += dy[i] * normalized;
    dbias[i] += dy[i];
  }
}

}  // namespace planc::reference

#endif  // PLANC_KERNELS_REFERENCE_NORM_H_
