// Rotary position embedding (Su et al. 2021) in the half-split layout of Hugging Face's Llama:
// element i of a head is rotated together with element i + D/2.
#ifndef PLANC_KERNELS_ROPE_H_
#define PLANC_KERNELS_ROPE_H_

#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// Frequency scaling of Llama 3.1 (its "rope_type: llama3"). factor = 1 leaves the frequencies
// alone. Wavelengths longer than original_positions / low_frequency_factor are stretched by
// `factor`, those shorter than original_positions / high_frequency_factor are kept, and between
// them the two are interpolated linearly in 1 / wavelength.
struct RopeScaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  int64_t original_positions = 8192;
};

// Fills rows for positions first_position .. first_position + positions - 1: entry (p, i) is the
// cosine and sine of position * frequency_i with frequency_i = theta^(-2i/D), computed in double
// and rounded to float. `cosine` and `sine` are [positions, D/2]. A table over several ranges of
// positions (context parallelism) is filled by several calls.
void FillRopeTable(int64_t first_position, int64_t positions, int64_t head_dim, double theta,
                   const RopeScaling& scaling, float* cosine, float* sine);

// Rotates `heads` heads of each row by direction * angle. Row r uses row (first_row + r) % sequence
// of the table. With a = x[i], b = x[i + D/2], c = cosine, s = direction * sine:
//   y[i] = a * c - b * s,   y[i + D/2] = b * c + a * s.
// The backward pass is the same call on the gradient with direction = -1. y may be the same slice
// as x.
struct RopeArgs {
  int64_t tokens = 0;  // T
  int64_t heads = 0;
  int64_t head_dim = 0;     // D, even
  int64_t sequence = 0;     // S: rows of the table
  int64_t first_row = 0;    // global row of local row 0
  int direction = +1;       // +1 forward, -1 backward
  const void* x = nullptr;  // [T, x_stride], heads start at column x_column
  int64_t x_stride = 0;
  int64_t x_column = 0;
  void* y = nullptr;  // [T, y_stride], heads start at column y_column
  int64_t y_stride = 0;
  int64_t y_column = 0;
  const float* cosine = nullptr;  // [S, D/2]
  const float* sine = nullptr;    // [S, D/2]
};
void Rope(const RopeArgs& args, DType dtype, KernelContext& ctx);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ROPE_H_
