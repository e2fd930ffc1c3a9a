#include "compiler/graph/step_graph.h"

namespace planc {
namespace {

template <typename Items>
int IndexByName(const Items& items, const std::string& name) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int StepGraph::PoolIndex(const std::string& name) const { return IndexByName(pools, name); }

int StepGraph::AddPool(const std::string& name, MemoryKind kind, PoolSlots slots) {
  pools.push_back({name, kind, slots, 0});
  return static_cast<int>(pools.size()) - 1;
}

ValueId StepGraph::AddValue(GraphValue value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size()) - 1;
}

int StepGraph::BlockIndex(const std::string& name) const { return IndexByName(blocks, name); }

int StepGraph::AddBlock(const std::string& name) {
  blocks.push_back({name, {}, {}});
  return static_cast<int>(blocks.size()) - 1;
}

int StepGraph::GroupIndex(const std::string& name) const { return IndexByName(groups, name); }

bool HoldsTable(const Unit& unit) { return unit.name.rfind("table", 0) == 0; }

bool HoldsPositions(const Unit& unit) { return unit.name.rfind("position", 0) == 0; }

bool IsSplitTable(const StepGraph& graph, const Unit& unit) {
  return HoldsTable(unit) && graph.GroupIndex("embedding") >= 0;
}

bool HasOneGradient(const StepGraph& graph, const Unit& unit) {
  // ZeRO 2 and 3 reduce after every microbatch.
  const bool passing = graph.zero >= 2 || graph.microbatches == 1;
  return passing && !HoldsTable(unit) && !HoldsPositions(unit);
}

std::vector<int64_t> LocalShape(const Mesh& mesh, const std::vector<int64_t>& shape,
                                const Layout& layout) {
  std::vector<int64_t> local = shape;
  for (Axis axis : kAllAxes) {
    if (layout[axis].kind == AxisLayout::Kind::kShard) local[layout[axis].dim] /= mesh[axis];
  }
  return local;
}

int64_t LocalElements(const StepGraph& graph, ValueId id) {
  int64_t product = 1;
  for (int64_t d : LocalShape(graph.mesh, graph.values[id].shape, graph.values[id].layout)) {
    product *= d;
  }
  return product;
}

int64_t LocalBytes(const StepGraph& graph, ValueId id) {
  return LocalElements(graph, id) * SizeOf(graph.values[id].dtype);
}

int64_t AlignedBytes(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string LocalPoolName(Stream stream) { return std::string("temp.") + StreamName(stream); }

ValueId StorageRoot(const StepGraph& graph, ValueId id) {
  while (graph.values[id].alias_of >= 0) id = graph.values[id].alias_of;
  return id;
}

}  // namespace planc
