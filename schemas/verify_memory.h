#ifndef PLANC_SCHEMAS_VERIFY_MEMORY_H_
#define PLANC_SCHEMAS_VERIFY_MEMORY_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "schemas/verify_flat.h"

namespace planc::verifying {

enum class ValueKind : uint8_t {
  kNone,       // never written
  kZero,       // zeros
  kScratch,    // left over by an operation
  kTensor,     // activations, their gradients, statistics, tokens
  kParameter,  // a range of a flat unit: master weights, moments, compute weights
  kGradient,   // a range of a flat unit's gradient
  kScalar,     // loss, sum of squares, norm, clipping coefficient
};
enum class ValueRole : uint8_t {
  kNone,
  kMaster,
  kFirstMoment,
  kSecondMoment,
  kWeight,
  kLoss,
  kSquareSum,
  kCoefficient,
  kNorm,
};

// What the plan has put into a range of memory, the same on every rank of a stage up to its layout.
struct Value {
  ValueKind kind = ValueKind::kNone;
  ValueRole role = ValueRole::kNone;
  DType dtype = DType::kF32;
  bool tile = false;  // each rank of dp_shard has only its own tile of the range
  AxisCodes layout{};
  int64_t begin = 0;  // bytes in the slot
  int64_t end = 0;
  int64_t stride = 0;  // between tiles
  int64_t rows = 0;    // tensors, on one rank
  int64_t columns = 0;
  // Some rows of a tensor, on one rank: from first_row on, of all_rows. 0 of 0 for whole tensors.
  int64_t first_row = 0;
  int64_t all_rows = 0;
  // Tensors: which function of tokens and weights it is; equal hashes are equal logical tensors.
  uint64_t hash = 0;
  // Gradients of activations: hash of the tensor it is the gradient of, and how many of that
  // tensor's uses it accounts for.
  uint64_t adjoint = 0;
  int terms = 0;
  int microbatch = -1;  // it is computed from, -1 for none
  int depth = -1;       // layers applied to the tokens so far, minus one
  // Parameters and gradients: the range of the flat unit.
  int unit = -1;
  int layer = -1;  // -1 for units that are not per layer
  int64_t first_element = 0;
  int64_t elements = 0;
  int version = 0;  // updates of the master weights that it has seen
  // Gradients and scalars: how many contributions, and the sum of their hashes.
  int64_t covered = 0;  // parameter elements that have contributions
  int64_t count = 0;
  uint64_t contributions = 0;
  int64_t references = 0;  // cells and snapshots that hold it
};

// What the rows of `value` add to a sum to which all rows of its tensor add `whole` together: equal
// sums mean that ranges of rows follow each other from the first row to the last. And how many
// whole tensors end with these rows.
uint64_t RowsContribution(const Value& value, uint64_t whole);
int RowsCount(const Value& value);

// Values by index, reused when nothing refers to them any more.
class ValueStore {
 public:
  static constexpr int kNoneIndex = 0;
  static constexpr int kZeroIndex = 1;
  static constexpr int kScratchIndex = 2;

  ValueStore();
  const Value& operator[](int index) const { return values_[index]; }
  int Add(const Value& value);
  void Retain(int index) { ++values_[index].references; }
  void Release(int index);

 private:
  std::deque<Value> values_;
  std::vector<int> free_;
};

using Clock = std::array<uint32_t, kStreamCount>;

struct Cell {
  int32_t value = ValueStore::kNoneIndex;
  uint32_t write = 0;       // number of the last write on its stream; 0: none
  Clock reads{};            // number of the last read, by stream
  int32_t written_in = -1;  // program that wrote it last
  uint8_t write_stream = 0;
  bool live_in = false;  // a program that repeats reads it before writing it
};

// Memory and streams of one rank that stands for its class.
//
// Order is proven with vector clocks: clock[s][t] is the number of the last instruction on stream t
// that is known to be complete when the next instruction on stream s starts. An access is in order
// when the accesses it conflicts with are known to be complete.
class Memory {
 public:
  Memory(const FlatPlan& flat, const RankClass& rank_class, ValueStore& store);

  // Programs begin when everything before them is complete.
  void BeginProgram(int program, bool repeats);
  // The instruction that starts on `stream` waits for `clock`.
  void Wait(int stream, const Clock& clock);
  // Completes the instruction on `stream`; the clock that an event recorded after it carries.
  const Clock& Complete(int stream);

  int64_t CellOf(const FlatOperand& operand, const int32_t* slots) const {
    return base_[operand.pool] +
           static_cast<int64_t>(slots[operand.binding]) * flat_.pool_cells[operand.pool] +
           operand.first_cell;
  }
  int64_t PoolCell(int pool, int64_t slot, int cell) const {
    return base_[pool] + slot * flat_.pool_cells[pool] + cell;
  }
  // Accesses `count` cells from `first` for the next instruction on `stream`; false when the access
  // is not ordered after an access it conflicts with, whose stream is then in conflict().
  bool Read(int stream, int64_t first, int count);
  bool Write(int stream, int64_t first, int count, int value);
  int conflict() const { return conflict_; }

  int ValueAt(int64_t cell) const { return cells_[cell].value; }
  void SetInitial(int64_t cell, int value);
  const std::vector<Cell>& cells() const { return cells_; }
  // The pool and the cell in its slot that `cell` is.
  std::pair<int, int> PoolOf(int64_t cell) const;

 private:
  const FlatPlan& flat_;
  ValueStore& store_;
  std::vector<int64_t> base_;  // first cell of each pool
  std::vector<Cell> cells_;
  std::array<Clock, kStreamCount> clocks_{};
  Clock done_{};  // instructions completed, by stream
  int program_ = -1;
  bool repeats_ = false;
  int conflict_ = 0;
};

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_MEMORY_H_
