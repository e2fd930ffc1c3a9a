#ifndef PLANC_SCHEMAS_VERIFY_DEFINITIONS_H_
#define PLANC_SCHEMAS_VERIFY_DEFINITIONS_H_

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schemas/plan.h"
#include "schemas/verify_memory.h"

namespace planc::verifying {

// A range of a flat unit that an operation takes as one matrix: one parameter, or several that lie
// one after another and are stacked along dimension 0.
struct WeightRange {
  bool valid = false;
  int unit = -1;
  int64_t first_element = 0;
  int64_t elements = 0;
  int64_t rows = 0;
  int64_t columns = 1;
  uint8_t tp = kReplicated;  // how the matrix is split over tp
};

// Finds the parameters of ranges.
class ParameterTable {
 public:
  explicit ParameterTable(const Plan& plan);

  // Index of the range, for At(). Looks at `cached` first, which it updates.
  int Find(int unit, int64_t first_element, int64_t elements, int* cached);
  const WeightRange& At(int index) const { return ranges_[index]; }
  // Elements of all parameters of the unit, without its padding.
  int64_t ParameterElements(int unit) const { return elements_[unit]; }

 private:
  WeightRange Resolve(int unit, int64_t first_element, int64_t elements) const;

  const Plan& plan_;
  std::vector<std::vector<int>> by_offset_;  // per unit: its parameters, by offset
  std::vector<int64_t> elements_;
  std::vector<WeightRange> ranges_;
  std::map<std::tuple<int, int64_t, int64_t>, int> index_;
};

// A weight as an operation of the forward pass read it.
struct WeightUse {
  uint64_t hash = 0;
  int range = -1;  // ParameterTable
  int layer = -1;
};

// How a tensor of the forward pass was computed.
struct Definition {
  uint64_t hash = 0;  // of the result; 0 marks a free place of the table
  Opcode opcode = Opcode::kZero;
  bool transpose_b = false;
  std::array<uint64_t, 3> inputs{};
  std::array<WeightUse, 2> weights{};
  int uses = 0;            // operations that the result's gradient flows back from
  bool credited = false;   // its weights' gradients have its contributions
  int64_t rows_taken = 0;  // by operations that take some rows only, each range once
  // Some rows of the tensor inputs[0], instead of the result of an operation, if `rows` is not 0.
  int64_t first_row = 0;
  int64_t rows = 0;
};

// Names the use of its weight number `weight` by the operation that computed the tensor: what it
// contributes to that weight's gradient.
uint64_t UseHash(const Definition& definition, int weight);

// Definitions of all tensors of one program, by hash.
class DefinitionTable {
 public:
  DefinitionTable() { Clear(); }
  void Clear();
  // The definition of `hash`, nullptr when there is none. Valid until the next Add.
  Definition* Find(uint64_t hash);
  // Adds the definition; false when there is one already (the tensor is computed again).
  bool Add(const Definition& definition);

 private:
  void Grow();

  std::vector<Definition> places_;  // open addressing
  size_t used_ = 0;
};

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_DEFINITIONS_H_
