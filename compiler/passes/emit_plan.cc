// Writes graph and schedule as a Plan: a buffer for every value, an instruction for every node with
// its cost, and the arenas of every rank class.
#include <map>

#include "compiler/cost/instruction_cost.h"
#include "compiler/passes/passes.h"

namespace planc {
namespace {

class PlanEmitter {
 public:
  PlanEmitter(const StepGraph& graph, Plan& plan) : g_(graph), plan_(plan) {}

  void Emit() {
    plan_.job = g_.job;
    plan_.mesh = g_.mesh;
    plan_.ranks_per_node = g_.job.cluster().gpus_per_node();
    plan_.microbatches = g_.microbatches;
    plan_.parameters = g_.parameters;
    plan_.groups = g_.groups;
    plan_.events = g_.events;
    plan_.params = g_.params;
    for (const GraphPool& pool : g_.pools) {
      plan_.pools.push_back({pool.name, pool.kind, pool.stride});
    }
    for (const GraphBlock& block : g_.blocks) EmitBlock(block);
    EmitUnits();
    plan_.scalars.loss = BufferOf(g_.named.at("loss"));
    plan_.scalars.eval_loss = BufferOf(g_.named.at("eval_loss"));
    plan_.scalars.grad_norm = BufferOf(g_.named.at("grad_norm"));
    for (RankClass& c : plan_.classes) PackArenas(c);
  }

 private:
  int BufferOf(ValueId id) {
    const auto [it, added] = buffers_.insert({id, static_cast<int>(plan_.buffers.size())});
    if (!added) return it->second;
    const GraphValue& v = g_.values[id];
    const GraphValue& root = g_.values[StorageRoot(g_, id)];
    Buffer buffer;
    buffer.name = v.name;
    buffer.pool = root.pool;
    buffer.offset = root.offset;
    buffer.bytes = LocalBytes(g_, id);
    buffer.dtype = v.dtype;
    buffer.shape = v.shape;
    buffer.layout = v.layout;
    plan_.buffers.push_back(std::move(buffer));
    return it->second;
  }

  // The value itself, or the one whose rows it is.
  ValueId WholeOf(ValueId id) const {
    return g_.values[id].first_row < 0 ? id : g_.values[id].alias_of;
  }

  // Bytes from the start of the whole value.
  int64_t OffsetOf(ValueId id) const {
    const GraphValue& v = g_.values[id];
    if (v.first_row < 0) return 0;
    return LocalBytes(g_, id) / LocalShape(g_.mesh, v.shape, v.layout)[0] * v.first_row;
  }

  int BindingOf(const GraphBlock& block, ValueId id) const {
    const GraphValue& root = g_.values[StorageRoot(g_, id)];
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      if (block.bindings[i] == GraphBinding{root.pool, root.role}) return static_cast<int>(i);
    }
    return -1;
  }

  void EmitBlock(const GraphBlock& block) {
    Block out;
    out.name = block.name;
    for (const GraphBinding& binding : block.bindings) out.bindings.push_back(binding.pool);
    for (const GraphNode& node : block.nodes) {
      Instruction instruction;
      std::vector<DType> dtypes;
      instruction.opcode = node.opcode;
      for (ValueId id : node.operands) {
        Operand operand;
        operand.buffer = BufferOf(WholeOf(id));
        operand.offset = OffsetOf(id);
        operand.binding = BindingOf(block, id);
        operand.shard_stride = g_.values[StorageRoot(g_, id)].shard_stride;
        operand.bytes = LocalBytes(g_, id);
        instruction.operands.push_back(operand);
        dtypes.push_back(g_.values[id].dtype);
      }
      instruction.integers = node.integers;
      instruction.reals = node.reals;
      instruction.stream = node.stream;
      instruction.waits = node.waits;
      instruction.records = node.records;
      instruction.group = node.group;
      instruction.label = node.label;
      const int64_t members = node.group < 0 ? 1 : GroupSize(g_.mesh, g_.groups[node.group]);
      instruction.cost = InstructionCost(instruction, dtypes, members);
      out.instructions.push_back(std::move(instruction));
    }
    plan_.blocks.push_back(std::move(out));
  }

  void EmitUnits() {
    for (size_t u = 0; u < g_.units.size(); ++u) {
      Unit unit = g_.units[u];
      const UnitStorage& s = g_.unit_storage[u];
      unit.master = BufferOf(s.master);
      unit.first_moment = BufferOf(s.first_moment);
      unit.second_moment = BufferOf(s.second_moment);
      if (s.snapshot >= 0) unit.snapshot = BufferOf(s.snapshot);
      unit.master_shard_stride = g_.values[s.master].shard_stride;
      plan_.units.push_back(std::move(unit));
    }
  }

  void PackArenas(RankClass& c) const {
    c.pool_bases.assign(plan_.pools.size(), 0);
    for (size_t p = 0; p < plan_.pools.size(); ++p) {
      int64_t& arena = c.arena_bytes[static_cast<int>(plan_.pools[p].kind)];
      c.pool_bases[p] = arena;
      arena += c.pool_slots[p] * plan_.pools[p].stride;
    }
  }

  const StepGraph& g_;
  Plan& plan_;
  std::map<ValueId, int> buffers_;
};

}  // namespace

absl::Status EmitPlan(const StepGraph& graph, Plan& plan) {
  PlanEmitter(graph, plan).Emit();
  return absl::OkStatus();
}

}  // namespace planc
