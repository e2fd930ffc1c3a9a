#ifndef PLANC_COMPILER_GRAPH_LAYOUT_RULES_H_
#define PLANC_COMPILER_GRAPH_LAYOUT_RULES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/step_graph.h"

namespace planc {

// The layout that operand `index` of `node` has after the node, given the layouts of the operands
// it reads. For updated operands it is the layout of what is added, which must be the operand's
// own. Errors: InvalidArgument when the operands' layouts do not fit together; the message names
// operand, axis and layouts.
absl::StatusOr<Layout> InferLayout(const StepGraph& graph, const GraphNode& node, int index);

// Checks every node of every block: layouts of all written operands equal what InferLayout says.
absl::Status CheckLayouts(const StepGraph& graph);

}  // namespace planc

#endif  // PLANC_COMPILER_GRAPH_LAYOUT_RULES_H_
