#include "compiler/graph/graph_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planc {
namespace {

std::string EventsText(const StepGraph& graph, const char* word,
                       const std::vector<EventRef>& refs) {
  std::string text;
  for (const EventRef& ref : refs) {
    absl::StrAppend(&text, " ", word, " ", graph.events[ref.event].name);
  }
  return text;
}

const char* SlotsText(PoolSlots slots) {
  switch (slots) {
    case PoolSlots::kOne:
      return "one slot";
    case PoolSlots::kLayers:
      return "a slot per layer";
    case PoolSlots::kDynamic:
      return "slots by schedule";
  }
  return "?";
}

// Name and place of every value that a block uses and that has a place.
std::string PlacesText(const StepGraph& graph, const GraphBlock& block) {
  std::map<ValueId, std::string> places;
  for (const GraphNode& node : block.nodes) {
    for (ValueId id : node.operands) {
      const GraphValue& v = graph.values[StorageRoot(graph, id)];
      if (v.pool < 0 || v.offset < 0) continue;
      places[StorageRoot(graph, id)] = absl::StrCat(
          v.name, "=", graph.pools[v.pool].name, v.role.empty() ? "" : ":", v.role, "+", v.offset);
    }
  }
  std::string text;
  for (const auto& [id, place] : places) absl::StrAppend(&text, "    ", place, "\n");
  return text;
}

}  // namespace

std::string NodeText(const StepGraph& graph, const GraphNode& node) {
  const OpcodeTraits& traits = TraitsOf(node.opcode);
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const GraphValue& value = graph.values[node.operands[i]];
    const std::string text = absl::StrCat(
        value.name, value.first_row < 0 ? "" : absl::StrCat("[", value.first_row, "..]"), "{",
        LayoutText(value.layout), "}");
    if (traits.operands[i].access != Access::kWrite) reads.push_back(text);
    if (traits.operands[i].access != Access::kRead) writes.push_back(text);
  }
  std::string attributes;
  for (size_t i = 0; i < node.integers.size(); ++i) {
    absl::StrAppend(&attributes, " ", traits.integers[i], "=", node.integers[i]);
  }
  return absl::StrCat(LabelName(node.label), " ", absl::StrJoin(writes, ", "), " = ", traits.text,
                      "(", absl::StrJoin(reads, ", "), ")", attributes,
                      node.group < 0 ? "" : absl::StrCat(" @", graph.groups[node.group].name),
                      node.stream == Stream::kCompute ? "" : " on ",
                      node.stream == Stream::kCompute ? "" : StreamName(node.stream),
                      EventsText(graph, "wait", node.waits),
                      EventsText(graph, "record", node.records));
}

std::string GraphText(const StepGraph& graph) {
  std::string text;
  for (const GroupKind& group : graph.groups) {
    absl::StrAppend(&text, "group ", group.name, " of ", GroupSize(graph.mesh, group), "\n");
  }
  for (const Unit& unit : graph.units) {
    absl::StrAppend(&text, "unit ", unit.name, ": ", unit.elements, " elements, ",
                    unit.decay_elements, " decayed", unit.tp_sharded ? ", split over tp" : "",
                    "\n");
  }
  for (const GraphPool& pool : graph.pools) {
    absl::StrAppend(&text, "pool ", pool.name, ": ", MemoryKindName(pool.kind), ", ",
                    SlotsText(pool.slots), " of ", pool.stride, " bytes\n");
  }
  for (const GraphBlock& block : graph.blocks) {
    absl::StrAppend(&text, block.name, ":\n");
    for (const GraphNode& node : block.nodes) {
      absl::StrAppend(&text, "  ", NodeText(graph, node), "\n");
    }
    absl::StrAppend(&text, PlacesText(graph, block));
  }
  return text;
}

}  // namespace planc
