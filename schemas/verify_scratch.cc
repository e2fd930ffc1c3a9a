// What instructions touch of their scratch, counted from the blocks they work on. Deliberately
// shares nothing with schemas/workspace.h and schemas/collective.h, from which the compiler
// reserves it: kernels/scratch/scratch_test.cc runs every kernel with these bytes and no more.
#include "schemas/verify_scratch.h"

#include <algorithm>
#include <initializer_list>

#include "schemas/verify_report.h"

namespace planc::verifying {
namespace {

int64_t Up(int64_t value, int64_t multiple) {
  return Plus(value, multiple - 1) / multiple * multiple;
}

int64_t Sum(std::initializer_list<int64_t> terms) {
  int64_t total = 0;
  for (const int64_t term : terms) total = Plus(total, term);
  return total;
}

// An f32 sum of every column for each block of at least 32 rows; no more than 64 blocks.
int64_t RowSums(int64_t rows, int64_t columns) {
  return Times(Times(4, std::clamp<int64_t>(Plus(rows, 31) / 32, 1, 64)), columns);
}

// A block each of A, of B and of the sums, as f32: no more than the whole matrices, rows in groups
// of 12, columns in panels of 16, the depth in fours, each from a cache line on; and no more than
// 16 MiB, however many threads share it.
int64_t Product(int64_t m, int64_t n, int64_t k) {
  const int64_t rows = Up(m, 12), columns = Up(n, 16), depth = Up(k, 4);
  const int64_t floats =
      Sum({Times(rows, depth), Times(depth, columns), Times(rows, columns), 3 * 15});
  return std::min(Times(4, floats), int64_t{16} << 20);
}

// One thread's blocks for one key/value head of one sequence of s tokens, head dimension d. Vector
// kernels work on f32, keys and dimensions in panels of 16, blocks of 48 queries by 96 keys.
int64_t VectorAttention(bool backward, int64_t s, int64_t d) {
  const int64_t keys = Times(Up(s, 16), d);     // panels over the keys
  const int64_t dims = Times(s, Up(d, 16));     // panels over the dimensions
  const int64_t queries = Times(48, d);         // of one block, as rows
  const int64_t panels = Times(48, Up(d, 16));  // and as panels
  const int64_t logits = 48 * 96, statistics = 2 * 48;
  if (!backward) return Times(4, Sum({keys, dims, queries, panels, logits, statistics}));
  return Times(4, Sum({Times(2, keys), Times(3, dims), Times(2, queries), Times(3, panels),
                       2 * logits, statistics}));
}

// Tiles work on bf16 factors with f32 sums, everything in steps of 32 but for columns of 16; blocks
// of 64 queries by 512 keys forward, of 128 by 128 backward.
int64_t TileAttention(bool backward, int64_t s, int64_t d) {
  const int64_t sequence = Up(s, 32), depth = Up(d, 32), columns = Up(d, 16);
  const int64_t queries = std::min<int64_t>(backward ? 128 : 64, sequence);
  const int64_t keys = std::min<int64_t>(backward ? 128 : 512, sequence);
  const int64_t tile = queries * keys;
  if (!backward) {
    // Of the sequence: keys and values. Of the block: queries, logits and probabilities, sums.
    return Sum({Times(2 * sequence, depth + columns), Times(2 * queries, depth), 6 * tile,
                Times(4 * queries, columns), 8 * queries});
  }
  // Of the sequence: queries and gradients of outputs in both orders, three f32 gradients, two
  // statistics a row. Of the block: keys in both orders and values, two f32 and three bf16 tiles.
  return Sum({Times(4 * sequence, depth + columns), Times(12 * sequence, columns), 8 * sequence,
              Times(2 * keys, 2 * depth + columns), 14 * tile});
}

int64_t Attention(bool backward, int64_t s, int64_t d) {
  // Nothing fits so many, and the sums below stay numbers.
  if (Times(s, d) > (int64_t{1} << 40)) return kMaxNumber;
  return std::max(VectorAttention(backward, s, d), TileAttention(backward, s, d));
}

// What the other members send at once: whole vectors up to 16 KiB, else this member's share.
int64_t AllReduce(int64_t count, int64_t members, int64_t element) {
  const bool whole = Times(count, element) <= 16384;
  const int64_t share = whole ? count : Plus(count, members - 1) / members;
  return Times(Times(members - 1, share), element);
}

}  // namespace

int64_t LeastScratchBytes(Opcode opcode, const int64_t* i, int64_t members, int64_t element) {
  switch (opcode) {
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kBiasBackward:
      return RowSums(i[0], i[1]);
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return Times(2, RowSums(i[0], i[1]));  // of weight and of bias
    case Opcode::kHeadNormBackward:
      return RowSums(i[0], i[3]);
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return Product(i[0], i[1], i[2]);
    case Opcode::kAttentionForward:
      return Attention(/*backward=*/false, i[1], i[4]);
    case Opcode::kAttentionBackward:
      return Attention(/*backward=*/true, i[1], i[4]);
    case Opcode::kAllReduce:
      return AllReduce(i[0], members, element);
    case Opcode::kReduceScatter:
      return Times(Times(members - 1, i[0]), element);
    default:
      return 0;
  }
}

}  // namespace planc::verifying
