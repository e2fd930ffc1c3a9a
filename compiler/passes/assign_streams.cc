// Orders the streams of a rank: wherever two streams touch the same pool slot, the later one in
// program order waits for an event that the earlier one records.
//
// There is one event per (pool, stream) with a cell per slot, "the last touch of this slot by this
// stream". A block records it after its last touch before another stream's, and waits for the other
// streams' events before its first touch. Since a wait means the latest record in program order,
// the same block is right in every call.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"

namespace planc {
namespace {

int BindingIndex(const StepGraph& graph, const GraphBlock& block, ValueId id) {
  const GraphValue& v = graph.values[StorageRoot(graph, id)];
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    if (block.bindings[i] == GraphBinding{v.pool, v.role}) return static_cast<int>(i);
  }
  return -1;
}

std::set<int> TouchedBindings(const StepGraph& graph, const GraphBlock& block,
                              const GraphNode& node) {
  std::set<int> touched;
  for (ValueId id : node.operands) touched.insert(BindingIndex(graph, block, id));
  return touched;
}

class StreamPass {
 public:
  explicit StreamPass(StepGraph& graph) : g_(graph), streams_(graph.pools.size()) {}

  void Run() {
    for (const GraphBlock& block : g_.blocks) {
      for (const GraphNode& node : block.nodes) {
        for (ValueId id : node.operands) {
          streams_[g_.values[StorageRoot(g_, id)].pool].insert(node.stream);
        }
      }
    }
    for (GraphBlock& block : g_.blocks) Synchronize(block);
  }

 private:
  int EventOf(int pool, Stream stream) {
    const auto [it, added] = events_.insert({{pool, stream}, static_cast<int>(g_.events.size())});
    if (added) {
      g_.events.push_back(
          {absl::StrCat(g_.pools[pool].name, "/", StreamName(stream)), pool, stream});
    }
    return it->second;
  }

  void Synchronize(GraphBlock& block) {
    // Per binding: streams whose touches the key stream has already waited for, and its last touch.
    std::map<std::pair<int, Stream>, std::set<Stream>> ordered;
    std::map<std::pair<int, Stream>, GraphNode*> unrecorded;
    const auto record = [&](int binding, Stream stream) {
      const auto found = unrecorded.find({binding, stream});
      if (found == unrecorded.end()) return;
      const int event = EventOf(block.bindings[binding].pool, stream);
      found->second->records.push_back({event, binding});
      unrecorded.erase(found);
    };
    for (GraphNode& node : block.nodes) {
      for (int binding : TouchedBindings(g_, block, node)) {
        const int pool = block.bindings[binding].pool;
        if (streams_[pool].size() < 2) continue;
        for (Stream other : streams_[pool]) {
          if (other == node.stream) continue;
          record(binding, other);
          if (ordered[{binding, node.stream}].insert(other).second) {
            node.waits.push_back({EventOf(pool, other), binding});
          }
          // What the other stream does next here must wait for this touch again.
          ordered[{binding, other}].erase(node.stream);
        }
        unrecorded[{binding, node.stream}] = &node;
      }
    }
    while (!unrecorded.empty()) {
      const auto [binding, stream] = unrecorded.begin()->first;
      record(binding, stream);
    }
  }

  StepGraph& g_;
  std::vector<std::set<Stream>> streams_;  // per pool: the streams that touch it
  std::map<std::pair<int, Stream>, int> events_;
};

}  // namespace

absl::Status AssignStreams(StepGraph& graph) {
  StreamPass(graph).Run();
  return absl::OkStatus();
}

}  // namespace planc
