#ifndef PLANC_COMPILER_GRAPH_BLOCK_BUILDER_H_
#define PLANC_COMPILER_GRAPH_BLOCK_BUILDER_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/step_graph.h"

namespace planc {

// Appends operations to one block, which is created when there is none of that name. Output layouts
// follow from the layout rules; the first misfit is kept in status() and stops further work.
class BlockBuilder {
 public:
  BlockBuilder(StepGraph* graph, const std::string& block, Label label);

  const absl::Status& status() const { return status_; }
  StepGraph& graph() { return *graph_; }
  int block() const { return block_; }
  void set_label(Label label) { label_ = label; }
  void set_stream(Stream stream) { stream_ = stream; }

  // Declares a block-local value whose layout the producing operation will set.
  ValueId Local(const std::string& name, DType dtype, std::vector<int64_t> shape);
  // Appends an operation. Layouts of block-local outputs that have none yet are inferred.
  void Emit(Opcode opcode, std::vector<ValueId> operands, std::vector<int64_t> integers = {},
            std::vector<double> reals = {}, const std::string& group = "");

  // Declares a value like `x` in its place, for an operation after which nothing reads `x`.
  ValueId InPlaceOf(ValueId x, const std::string& name);
  // Some rows of `x`, in place: on every rank those from `first_row` of its own rows on; `rows`
  // counts them over all ranks.
  ValueId Rows(ValueId x, int64_t first_row, int64_t rows);

  // Scratch of one operation.
  ValueId Workspace(int64_t bytes);

  // Conversions of layout on `tp`; they return `x` itself when it already is as wanted.
  ValueId ReduceOverTp(ValueId x);                    // P -> R in place
  ValueId ReduceScatterOverTp(ValueId x, ValueId y);  // P -> S0; y is declared, -1: block-local
  ValueId GatherOverTp(ValueId x);                    // S0 -> R
  // Sum (or maximum) over the group in place; the value seen with its layout after it.
  ValueId AllReduce(ValueId x, const std::string& group, bool maximum = false);

  // c[m,n] = op(a) op(b), sizes from the values' local shapes. `into` is -1 for a block-local
  // result.
  ValueId Matmul(const std::string& name, ValueId a, ValueId b, bool transpose_a, bool transpose_b,
                 DType dtype, ValueId into = -1);
  // c += op(a) op(b)
  void MatmulAdd(ValueId a, ValueId b, bool transpose_a, bool transpose_b, ValueId c);

  int64_t LocalDim(ValueId id, int dim) const;

 private:
  void SetLayout(ValueId id, const Layout& layout);
  std::vector<int64_t> MatmulSizes(ValueId a, ValueId b, bool ta, bool tb) const;

  StepGraph* graph_;
  int block_;
  Label label_;
  Stream stream_ = Stream::kCompute;
  absl::Status status_;
  std::set<ValueId> unknown_;  // block-local values whose layout is not known yet
};

// Appends one operation to `block`, created when there is none of that name.
absl::Status EmitOne(StepGraph& graph, const std::string& block, Label label, Stream stream,
                     Opcode opcode, std::vector<ValueId> operands, std::vector<int64_t> integers,
                     std::vector<double> reals = {}, const std::string& group = "");

}  // namespace planc

#endif  // PLANC_COMPILER_GRAPH_BLOCK_BUILDER_H_
