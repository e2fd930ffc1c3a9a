// Fixes the place of every value inside its pool slot. Block-local values get lifetimes within
// their block and share one pool per stream: greedy by size (Pisarchyk and Lee, arXiv 2001.03288).
#include <algorithm>
#include <map>

#include "compiler/passes/passes.h"

namespace planc {
namespace {

struct Lifetime {
  ValueId root;
  int64_t bytes;
  int first;  // node index
  int last;
  int64_t offset;
};

bool Overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Lifetimes of the block-local values that the nodes of `stream` use.
std::vector<Lifetime> LocalLifetimes(const StepGraph& graph, const GraphBlock& block,
                                     Stream stream) {
  std::map<ValueId, Lifetime> lifetimes;
  for (size_t n = 0; n < block.nodes.size(); ++n) {
    if (block.nodes[n].stream != stream) continue;
    for (ValueId id : block.nodes[n].operands) {
      const ValueId root = StorageRoot(graph, id);
      if (graph.values[root].pool >= 0) continue;
      const int index = static_cast<int>(n);
      const int64_t bytes = AlignedBytes(LocalBytes(graph, root));
      auto [it, added] = lifetimes.insert({root, Lifetime{root, bytes, index, index, 0}});
      it->second.last = index;
    }
  }
  std::vector<Lifetime> list;
  for (const auto& [root, lifetime] : lifetimes) list.push_back(lifetime);
  return list;
}

// Gives every lifetime, in the order of the list, the lowest offset that collides with none placed
// before it. Returns the bytes needed.
int64_t PlaceInOrder(std::vector<Lifetime>& lifetimes) {
  std::vector<Lifetime> placed;  // by offset
  int64_t total = 0;
  for (Lifetime& item : lifetimes) {
    int64_t offset = 0;
    for (const Lifetime& other : placed) {
      if (!Overlap(item, other)) continue;
      if (offset + item.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    item.offset = offset;
    total = std::max(total, offset + item.bytes);
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), item,
                         [](const Lifetime& a, const Lifetime& b) { return a.offset < b.offset; });
    placed.insert(at, item);
  }
  return total;
}

// Places by size, by length of life, by their product and by begin, and keeps the best.
void PlaceGreedily(std::vector<Lifetime>& lifetimes) {
  using Key = int64_t (*)(const Lifetime&);
  const Key keys[] = {
      [](const Lifetime& l) { return -l.bytes; },
      [](const Lifetime& l) { return int64_t{l.first - l.last}; },
      [](const Lifetime& l) { return -l.bytes * (l.last - l.first + 1); },
      [](const Lifetime& l) { return int64_t{l.first}; },
      [](const Lifetime& l) { return int64_t{-l.last}; },
  };
  std::vector<Lifetime> best;
  int64_t best_bytes = 0;
  for (const Key key : keys) {
    std::vector<Lifetime> trial = lifetimes;
    std::stable_sort(trial.begin(), trial.end(),
                     [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
    std::stable_sort(trial.begin(), trial.end(),
                     [key](const Lifetime& a, const Lifetime& b) { return key(a) < key(b); });
    const int64_t bytes = PlaceInOrder(trial);
    if (best.empty() || bytes < best_bytes) {
      best = std::move(trial);
      best_bytes = bytes;
    }
  }
  lifetimes = std::move(best);
}

void PlaceLocals(StepGraph& graph, const GraphBlock& block, Stream stream) {
  std::vector<Lifetime> lifetimes = LocalLifetimes(graph, block, stream);
  if (lifetimes.empty()) return;
  const std::string name = LocalPoolName(stream);
  int pool = graph.PoolIndex(name);
  if (pool < 0) {
    const MemoryKind kind =
        stream == Stream::kCompute ? MemoryKind::kWorkspace : MemoryKind::kCommunication;
    pool = graph.AddPool(name, kind, PoolSlots::kOne);
  }
  PlaceGreedily(lifetimes);
  GraphPool& p = graph.pools[pool];
  for (const Lifetime& l : lifetimes) {
    graph.values[l.root].pool = pool;
    graph.values[l.root].offset = l.offset;
    p.stride = std::max(p.stride, l.offset + l.bytes);
  }
}

// Saved values lie one after another: all of them live from the forward to the backward pass.
void PlaceSaved(StepGraph& graph, const std::string& name) {
  const int pool = graph.PoolIndex(name);
  if (pool < 0) return;
  int64_t end = 0;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    GraphValue& v = graph.values[id];
    if (v.pool != pool || v.alias_of >= 0 || v.role == kGradientRole) continue;
    v.offset = end;
    end += AlignedBytes(LocalBytes(graph, static_cast<ValueId>(id)));
  }
  graph.pools[pool].stride = std::max(graph.pools[pool].stride, end);
}

void CollectBindings(const StepGraph& graph, GraphBlock& block) {
  for (const GraphNode& node : block.nodes) {
    for (ValueId id : node.operands) {
      const GraphValue& v = graph.values[StorageRoot(graph, id)];
      const GraphBinding binding{v.pool, v.role};
      auto& all = block.bindings;
      if (std::find(all.begin(), all.end(), binding) == all.end()) all.push_back(binding);
    }
  }
}

}  // namespace

absl::Status PlanMemory(StepGraph& graph) {
  PlaceSaved(graph, kSavedPool);
  PlaceSaved(graph, kSharedPool);
  for (GraphBlock& block : graph.blocks) {
    for (int s = 0; s < kStreamCount; ++s) PlaceLocals(graph, block, static_cast<Stream>(s));
  }
  for (GraphPool& pool : graph.pools) pool.stride = AlignedBytes(pool.stride);
  for (GraphBlock& block : graph.blocks) CollectBindings(graph, block);
  return absl::OkStatus();
}

}  // namespace planc
