// Plain token embedding; see kernels/embedding.h.
#ifndef PLANC_KERNELS_REFERENCE_EMBEDDING_H_
#define PLANC_KERNELS_REFERENCE_EMBEDDING_H_

#include <cstdint>

namespace planc::reference {

// x [tokens, hidden] = the rows of the local part of the table, or zeros.
template <typename S>
void Embedding(const int32_t* token_ids, const S* table, int64_t tokens, int64_t hidden,
               int64_t vocab_rows, int64_t vocab_begin, S* x) {
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t local = token_ids[t] - vocab_begin;
    for (int64_t i = 0; i < hidden; ++i) {
      x[t * hidden + i] = local >= 0 && local < vocab_rows ? table[local * hidden + i] : S(0);
    }
  }
}

// dtable += the rows of dx.
template <typename S>
void EmbeddingBackward(const int32_t* token_ids, const S* dx, int64_t tokens, int64_t hidden,
                       int64_t vocab_rows, int64_t vocab_begin, S* dtable) {
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t local = token_ids[t] - vocab_begin;
    if (local < 0 || local >= vocab_rows) continue;
    for (int64_t i = 0; i < hidden; ++i) dtable[local * hidden + i] += dx[t * hidden + i];
  }
}

}  // namespace planc::reference

#endif  // PLANC_KERNELS_REFERENCE_EMBEDDING_H_
