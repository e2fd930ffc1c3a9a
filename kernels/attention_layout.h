// Where one head's rows lie, and the base of its exponentials.
#ifndef PLANC_KERNELS_ATTENTION_LAYOUT_H_
#define PLANC_KERNELS_ATTENTION_LAYOUT_H_

#include <cstdint>

#include "kernels/attention.h"

namespace planc::host {

inline constexpr float kLog2E = 1.44269504088896340736f;
inline constexpr float kLn2 = 0.69314718055994530942f;

// Where one head's rows lie in qkv, o and their gradients.
struct HeadColumns {
  HeadColumns(const AttentionShape& s, int64_t batch)
      : stride((s.query_heads + 2 * s.kv_heads) * s.head_dim),
        output_stride(s.query_heads * s.head_dim),
        first_row(batch * s.sequence),
        shape(s) {}

  int64_t Query(int64_t head) const { return first_row * stride + head * shape.head_dim; }
  int64_t Key(int64_t kv_head) const { return Query(shape.query_heads + kv_head); }
  int64_t Value(int64_t kv_head) const { return Key(shape.kv_heads + kv_head); }
  int64_t Output(int64_t head) const { return first_row * output_stride + head * shape.head_dim; }

  int64_t stride;         // of qkv
  int64_t output_stride;  // of o
  int64_t first_row;      // of the sequence
  const AttentionShape& shape;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_ATTENTION_LAYOUT_H_
