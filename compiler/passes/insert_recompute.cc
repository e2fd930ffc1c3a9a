// Decides which values of a layer's forward pass are kept for its backward pass, and clones the
// operations that produce the others into the backward block. "selective" follows Korthikanti et
// al. (arXiv 2205.05198): drop what is cheap to compute again.
#include <map>
#include <set>

#include "compiler/passes/passes.h"

namespace planc {
namespace {

bool IsScratch(const StepGraph& graph, ValueId id) { return graph.values[id].name == "workspace"; }

// Operations whose results `selective` computes again: memory-bound, or a gather of what is kept.
bool CheapToRecompute(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRmsNormForward:
    case Opcode::kLayerNormForward:
    case Opcode::kHeadNormForward:
    case Opcode::kSwigluForward:
    case Opcode::kGeluForward:
    case Opcode::kAllGather:
      return true;
    default:
      return false;
  }
}

class RecomputePass {
 public:
  explicit RecomputePass(StepGraph& graph)
      : g_(graph),
        forward_(graph.blocks[graph.BlockIndex("layer_forward")].nodes),
        backward_(graph.blocks[graph.BlockIndex("layer_backward")].nodes) {}

  void Run() {
    FindProducers();
    for (const GraphNode& node : backward_) {
      for (ValueId id : node.operands) Need(StorageRoot(g_, id));
    }
    KeepSaved();
    CloneRecomputed();
  }

 private:
  void FindProducers() {
    for (size_t i = 0; i < forward_.size(); ++i) {
      const auto& operands = TraitsOf(forward_[i].opcode).operands;
      for (size_t o = 0; o < operands.size(); ++o) {
        const ValueId root = StorageRoot(g_, forward_[i].operands[o]);
        if (operands[o].access == Access::kRead || g_.values[root].pool >= 0) continue;
        if (IsScratch(g_, root)) continue;
        producers_[root].push_back(i);
      }
    }
  }

  bool IsSaved(Opcode producer) const {
    switch (g_.job.recompute()) {
      case proto::RECOMPUTE_FULL:
        return false;
      case proto::RECOMPUTE_SELECTIVE:
        return !CheapToRecompute(producer);
      default:
        return true;
    }
  }

  // The backward pass reads `root`: keep it, or compute it again, which needs its operands.
  void Need(ValueId root) {
    const auto found = producers_.find(root);
    if (found == producers_.end() || saved_.count(root) != 0 || again_.count(root) != 0) return;
    if (IsSaved(forward_[found->second.front()].opcode)) {
      saved_.insert(root);
      return;
    }
    again_.insert(root);
    for (size_t index : found->second) {
      to_place_.insert(index);
      for (ValueId id : forward_[index].operands) Need(StorageRoot(g_, id));
    }
  }

  void KeepSaved() {
    const int pool = g_.PoolIndex(kSavedPool);
    for (ValueId root : saved_) {
      g_.values[root].pool = pool;
      g_.values[root].offset = -1;
    }
  }

  // A copy of a value written again in the backward block; values of other storage stay themselves.
  ValueId Cloned(ValueId id) {
    if (id < 0) return id;
    const ValueId root = StorageRoot(g_, id);
    const bool scratch = IsScratch(g_, root);
    if (again_.count(root) == 0 && !scratch) return id;
    if (!scratch) {
      const auto found = clones_.find(id);
      if (found != clones_.end()) return found->second;
    }
    GraphValue copy = g_.values[id];
    if (copy.alias_of >= 0) copy.alias_of = Cloned(copy.alias_of);
    const ValueId clone = g_.AddValue(copy);
    clones_[id] = clone;
    return clone;
  }

  // Puts what is computed again right before its first use, so that it takes memory no longer.
  void CloneRecomputed() {
    std::vector<GraphNode> nodes;
    for (GraphNode& node : backward_) {
      std::set<size_t> needed;
      for (ValueId id : node.operands) Collect(StorageRoot(g_, id), needed);
      for (size_t index : needed) {
        GraphNode again = forward_[index];
        again.label = Label::kRecompute;
        for (ValueId& id : again.operands) id = Cloned(id);
        again.result = Cloned(again.result);
        nodes.push_back(std::move(again));
      }
      for (ValueId& id : node.operands) {
        if (!IsScratch(g_, id)) id = Cloned(id);
      }
      nodes.push_back(node);
    }
    backward_ = std::move(nodes);
  }

  // Moves the operations that produce `root`, and what they need, from those to place to `needed`.
  void Collect(ValueId root, std::set<size_t>& needed) {
    if (again_.count(root) == 0) return;
    for (size_t index : producers_.at(root)) {
      if (to_place_.erase(index) == 0) continue;
      needed.insert(index);
      for (ValueId id : forward_[index].operands) Collect(StorageRoot(g_, id), needed);
    }
  }

  StepGraph& g_;
  std::vector<GraphNode>& forward_;
  std::vector<GraphNode>& backward_;
  std::map<ValueId, std::vector<size_t>>
      producers_;  // local storage -> forward nodes that write it
  std::set<ValueId> saved_;
  std::set<ValueId> again_;
  std::set<size_t> to_place_;  // forward nodes whose copies are not in the backward block yet
  std::map<ValueId, ValueId> clones_;
};

}  // namespace

absl::Status InsertRecompute(StepGraph& graph) {
  RecomputePass(graph).Run();
  return absl::OkStatus();
}

}  // namespace planc
