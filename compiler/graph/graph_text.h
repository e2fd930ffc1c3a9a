#ifndef PLANC_COMPILER_GRAPH_GRAPH_TEXT_H_
#define PLANC_COMPILER_GRAPH_GRAPH_TEXT_H_

#include <string>

#include "compiler/graph/step_graph.h"

namespace planc {

// One operation as one line: label, results, operands with their layouts, attributes, events.
std::string NodeText(const StepGraph& graph, const GraphNode& node);

// The whole graph for golden files: groups, units, pools, then every block with its operations and
// the places of its values.
std::string GraphText(const StepGraph& graph);

}  // namespace planc

#endif  // PLANC_COMPILER_GRAPH_GRAPH_TEXT_H_
