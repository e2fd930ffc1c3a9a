// Everything that can be read off a plan without executing it: indices, counts, ranges, arenas.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_report.h"

namespace planc::verifying {
namespace {

bool InRange(int64_t index, size_t size) {
  return index >= 0 && index < static_cast<int64_t>(size);
}

bool Sane(int64_t number) { return number >= 0 && number <= kMaxNumber; }

class StructureCheck {
 public:
  StructureCheck(const Plan& plan, Report& report) : plan_(plan), report_(report) {}

  void Run() {
    Mesh();
    if (!report_.ok()) return;  // layouts and groups are judged by the sizes of the axes
    Groups();
    Pools();
    Buffers();
    Events();
    if (!report_.ok()) return;  // blocks refer to all of these
    Blocks();
    Units();
    Scalars();
    if (!report_.ok()) return;
    Classes();
  }

 private:
  void Bad(const std::string& message) { report_.Add("structure", message); }

  void Mesh() {
    int64_t world = 1;
    for (Axis axis : kAllAxes) {
      if (plan_.mesh[axis] < 1) Bad(absl::StrCat("mesh axis ", AxisName(axis), " is below 1"));
      world = Times(world, std::max<int64_t>(plan_.mesh[axis], 1));
    }
    if (world > int64_t{1} << 24) Bad(absl::StrCat("the mesh has ", Counted(world, "rank")));
    if (plan_.ranks_per_node < 1 || plan_.ranks_per_node > kMaxNumber) {
      Bad(absl::StrCat("ranks_per_node is ", plan_.ranks_per_node));
    } else if (world % plan_.ranks_per_node != 0) {
      Bad(absl::StrCat(world, " ranks do not fill nodes of ", plan_.ranks_per_node));
    }
    if (plan_.microbatches < 1 || plan_.microbatches > (int64_t{1} << 30)) {
      Bad(absl::StrCat("microbatches is ", plan_.microbatches));
    }
  }

  void Groups() {
    for (const GroupKind& kind : plan_.groups) {
      if (kind.axes == 0 || kind.axes >= (1 << kAxisCount)) {
        Bad(absl::StrCat("group ", kind.name, " has no valid axes"));
      } else if (kind.pipeline_ends && (kind.axes & AxisBit(Axis::kPp)) == 0) {
        Bad(absl::StrCat("group ", kind.name, " joins pipeline ends without the pp axis"));
      }
    }
  }

  void Pools() {
    for (const Pool& pool : plan_.pools) {
      if (static_cast<int>(pool.kind) >= kMemoryKindCount) {
        Bad(absl::StrCat("pool ", pool.name, " has no valid memory kind"));
      }
      if (!Sane(pool.stride) || pool.stride % kAlignment != 0) {
        Bad(absl::StrCat("stride ", pool.stride, " of pool ", pool.name, " is not a multiple of ",
                         kAlignment));
      }
    }
  }

  void Buffers() {
    for (const Buffer& buffer : plan_.buffers) {
      if (!InRange(buffer.pool, plan_.pools.size())) {
        Bad(absl::StrCat("buffer ", buffer.name, " is in no pool"));
        continue;
      }
      if (SizeOf(buffer.dtype) == 0) {
        Bad(absl::StrCat("buffer ", buffer.name, " has no valid dtype"));
        continue;
      }
      if (!Sane(buffer.offset) || !Sane(buffer.bytes) ||
          buffer.offset + buffer.bytes > plan_.pools[buffer.pool].stride) {
        Bad(absl::StrCat("buffer ", buffer.name, " at ", buffer.offset, " with ",
                         Counted(buffer.bytes, "byte"), " leaves its slot of ",
                         Counted(plan_.pools[buffer.pool].stride, "byte")));
      }
      if (buffer.offset % SizeOf(buffer.dtype) != 0) {
        Bad(absl::StrCat("buffer ", buffer.name, " is not aligned to its elements"));
      }
      BufferLayout(buffer);
    }
  }

  void BufferLayout(const Buffer& buffer) {
    std::vector<int64_t> local = buffer.shape;
    for (Axis axis : kAllAxes) {
      const AxisLayout& layout = buffer.layout[axis];
      const int64_t n = plan_.mesh[axis];
      if (static_cast<int>(layout.kind) > static_cast<int>(AxisLayout::Kind::kPartialMax)) {
        return Bad(absl::StrCat("buffer ", buffer.name, " has no valid layout"));
      }
      if (n == 1 && layout.kind != AxisLayout::Kind::kReplicated) {
        return Bad(absl::StrCat("buffer ", buffer.name, " is split over axis ", AxisName(axis),
                                " of size 1"));
      }
      if (layout.kind != AxisLayout::Kind::kShard) continue;
      if (!InRange(layout.dim, local.size()) || local[layout.dim] % n != 0) {
        return Bad(absl::StrCat("buffer ", buffer.name, " cannot be split in ", n,
                                " along dimension ", static_cast<int>(layout.dim)));
      }
      local[layout.dim] /= n;
    }
    int64_t bytes = SizeOf(buffer.dtype);
    for (int64_t size : local) {
      if (!Sane(size)) return Bad(absl::StrCat("buffer ", buffer.name, " has a negative size"));
      bytes = Times(bytes, size);
    }
    if (bytes != buffer.bytes) {
      Bad(absl::StrCat("buffer ", buffer.name, " has ", Counted(buffer.bytes, "byte"),
                       " but its shape on one rank takes ", bytes));
    }
  }

  void Events() {
    for (const Event& event : plan_.events) {
      if (!InRange(event.pool, plan_.pools.size())) {
        Bad(absl::StrCat("event ", event.name, " belongs to no pool"));
      }
      if (static_cast<int>(event.stream) >= kStreamCount) {
        Bad(absl::StrCat("event ", event.name, " has no valid stream"));
      }
    }
  }

  void Blocks() {
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      const Block& block = plan_.blocks[b];
      for (int pool : block.bindings) {
        if (!InRange(pool, plan_.pools.size())) {
          Bad(absl::StrCat("block ", block.name, " binds no valid pool"));
          return;
        }
      }
      for (size_t i = 0; i < block.instructions.size() && !report_.full(); ++i) {
        CheckInstruction(static_cast<int>(b), static_cast<int>(i));
      }
    }
  }

  void CheckInstruction(int b, int i) {
    const Block& block = plan_.blocks[b];
    const Instruction& instruction = block.instructions[i];
    if (static_cast<int>(instruction.opcode) >= kOpcodeCount) {
      return Bad(absl::StrCat("block ", block.name, ", instruction ", i, " has no valid opcode"));
    }
    const std::string where = Where(plan_, b, i);
    const OpcodeTraits& traits = TraitsOf(instruction.opcode);
    if (instruction.operands.size() != traits.operands.size() ||
        instruction.integers.size() != traits.integers.size() ||
        instruction.reals.size() != traits.reals.size()) {
      return Bad(absl::StrCat(where, ": wrong number of operands or attributes"));
    }
    if (static_cast<int>(instruction.stream) >= kStreamCount ||
        static_cast<int>(instruction.label) > static_cast<int>(Label::kPipeline)) {
      return Bad(absl::StrCat(where, ": no valid stream or label"));
    }
    for (double real : instruction.reals) {
      if (!std::isfinite(real)) return Bad(absl::StrCat(where, ": an attribute is not finite"));
    }
    for (const Operand& operand : instruction.operands) {
      if (!InRange(operand.buffer, plan_.buffers.size())) {
        return Bad(absl::StrCat(where, ": an operand has no buffer"));
      }
      if (!InRange(operand.binding, block.bindings.size()) ||
          block.bindings[operand.binding] != plan_.buffers[operand.buffer].pool) {
        return Bad(absl::StrCat(where, ": operand ", plan_.buffers[operand.buffer].name,
                                " is bound to a slot of another pool"));
      }
    }
    CheckEvents(block, instruction, where);
    CheckGroup(instruction, traits.kind, where);
  }

  void CheckEvents(const Block& block, const Instruction& instruction, const std::string& where) {
    for (const std::vector<EventRef>* refs : {&instruction.waits, &instruction.records}) {
      for (const EventRef& ref : *refs) {
        if (!InRange(ref.event, plan_.events.size()) ||
            !InRange(ref.binding, block.bindings.size()) ||
            block.bindings[ref.binding] != plan_.events[ref.event].pool) {
          return Bad(absl::StrCat(where, ": an event does not exist or is bound to another pool"));
        }
        if (refs == &instruction.records && plan_.events[ref.event].stream != instruction.stream) {
          return Bad(absl::StrCat(where, ": records event ", plan_.events[ref.event].name,
                                  " of another stream"));
        }
      }
    }
  }

  void CheckGroup(const Instruction& instruction, OpcodeKind kind, const std::string& where) {
    const bool communicates = kind == OpcodeKind::kCollective || kind == OpcodeKind::kTransfer;
    if (!communicates) {
      if (instruction.group != -1) Bad(absl::StrCat(where, ": a local operation has a group"));
      return;
    }
    if (!InRange(instruction.group, plan_.groups.size())) {
      return Bad(absl::StrCat(where, ": no valid group"));
    }
    const GroupKind& group = plan_.groups[instruction.group];
    if (GroupSize(plan_.mesh, group) < 2) {
      return Bad(absl::StrCat(where, ": group ", group.name, " has a single member"));
    }
    if (kind != OpcodeKind::kTransfer) return;
    if (group.axes != AxisBit(Axis::kPp) || group.pipeline_ends) {
      Bad(absl::StrCat(where, ": transfers need the pp group, not ", group.name));
    }
    const bool send = instruction.opcode == Opcode::kSend;
    const int64_t delta = instruction.integers[1];
    const Stream next = send ? Stream::kSendNext : Stream::kRecvNext;
    const Stream previous = send ? Stream::kSendPrevious : Stream::kRecvPrevious;
    if (!((delta == 1 && instruction.stream == next) ||
          (delta == -1 && instruction.stream == previous))) {
      Bad(absl::StrCat(where, ": a transfer by ", Counted(delta, "stage"), " cannot use stream ",
                       StreamName(instruction.stream)));
    }
  }

  // Snapshots are taken between programs and read while programs run: nothing else may live there,
  // and every shard has a place of its own.
  void UnitSnapshot(const Unit& unit, int64_t shard) {
    const bool wanted = plan_.job.checkpoint().async();
    if (!wanted && unit.snapshot == -1) return;
    if (!wanted || !InRange(unit.snapshot, plan_.buffers.size())) {
      return Bad(absl::StrCat("unit ", unit.name, wanted ? " lacks a" : " has a needless",
                              " snapshot buffer"));
    }
    const Buffer& buffer = plan_.buffers[unit.snapshot];
    const auto in_pool = [&](const Operand& operand) {
      return InRange(operand.buffer, plan_.buffers.size()) &&
             plan_.buffers[operand.buffer].pool == buffer.pool;
    };
    bool shared = std::count_if(plan_.units.begin(), plan_.units.end(), [&](const Unit& other) {
                    return InRange(other.snapshot, plan_.buffers.size()) &&
                           plan_.buffers[other.snapshot].pool == buffer.pool;
                  }) != 1;
    for (const Block& block : plan_.blocks) {
      for (const Instruction& instruction : block.instructions) {
        shared |= std::any_of(instruction.operands.begin(), instruction.operands.end(), in_pool);
      }
    }
    if (buffer.dtype != DType::kF32 || buffer.bytes != Times(shard, 3 * SizeOf(DType::kF32)) ||
        plan_.pools[buffer.pool].kind != MemoryKind::kHostPinned || shared) {
      Bad(absl::StrCat("buffer ", buffer.name, " is no snapshot of unit ", unit.name, " alone"));
    }
    for (const RankClass& rank_class : plan_.classes) {
      if (!InRange(unit.master, plan_.buffers.size())) break;
      const int master_pool = plan_.buffers[unit.master].pool;
      const size_t pools = rank_class.pool_slots.size();
      if (!InRange(master_pool, pools) || !InRange(buffer.pool, pools)) continue;
      if (rank_class.pool_slots[master_pool] != rank_class.pool_slots[buffer.pool]) {
        Bad(absl::StrCat("stage ", rank_class.stage, " has not one snapshot of unit ", unit.name,
                         " for each shard"));
      }
    }
  }

  void Units() {
    for (const Unit& unit : plan_.units) {
      if (!Sane(unit.elements) || unit.elements < 1 ||
          unit.elements % plan_.mesh[Axis::kDpShard] != 0 || !Sane(unit.decay_elements) ||
          unit.decay_elements > unit.elements || !Sane(unit.master_shard_stride)) {
        Bad(absl::StrCat("unit ", unit.name, " has invalid sizes"));
        continue;
      }
      const int64_t shard = unit.elements / plan_.mesh[Axis::kDpShard];
      for (int buffer : {unit.master, unit.first_moment, unit.second_moment}) {
        if (!InRange(buffer, plan_.buffers.size())) {
          Bad(absl::StrCat("unit ", unit.name, " lacks master weights or moments"));
        } else if (plan_.buffers[buffer].dtype != DType::kF32 ||
                   plan_.buffers[buffer].bytes < shard * SizeOf(DType::kF32)) {
          Bad(absl::StrCat("buffer ", plan_.buffers[buffer].name, " cannot hold a shard of unit ",
                           unit.name));
        }
      }
      UnitSnapshot(unit, shard);
    }
    for (const Parameter& parameter : plan_.params) {
      if (!InRange(parameter.unit, plan_.units.size()) || !Sane(parameter.unit_offset) ||
          parameter.shape.empty() || parameter.shape.size() > 2 ||
          parameter.local_shape.size() != parameter.shape.size() || parameter.tp_dim < -1 ||
          parameter.tp_dim >= static_cast<int64_t>(parameter.shape.size())) {
        Bad(absl::StrCat("parameter ", parameter.name, " has no valid unit or shape"));
      }
    }
  }

  void Scalars() {
    const StepScalars& s = plan_.scalars;
    Scalar("loss", s.loss, DType::kF64);
    Scalar("eval loss", s.eval_loss, DType::kF64);
    Scalar("gradient norm", s.grad_norm, DType::kF32);
  }

  void Scalar(const std::string& name, int buffer, DType dtype) {
    if (!InRange(buffer, plan_.buffers.size()) || plan_.buffers[buffer].dtype != dtype ||
        plan_.buffers[buffer].bytes != SizeOf(dtype)) {
      Bad(absl::StrCat("the ", name, " is no ", DTypeName(dtype), " scalar"));
    }
  }

  void Classes() {
    if (static_cast<int64_t>(plan_.classes.size()) != plan_.mesh[Axis::kPp]) {
      return Bad(absl::StrCat(plan_.classes.size(), " rank classes for ", plan_.mesh[Axis::kPp],
                              " pipeline stages"));
    }
    for (size_t c = 0; c < plan_.classes.size() && !report_.full(); ++c) {
      const RankClass& rank_class = plan_.classes[c];
      if (rank_class.stage != static_cast<int64_t>(c)) {
        Bad(absl::StrCat("rank class ", c, " is of stage ", rank_class.stage));
      }
      if (rank_class.pool_slots.size() != plan_.pools.size() ||
          rank_class.pool_bases.size() != plan_.pools.size()) {
        Bad(absl::StrCat("stage ", c, " does not place every pool"));
        continue;
      }
      Arenas(rank_class);
    }
  }

  // Pools lie one after another in the arena of their kind, without gaps, and the arena ends there.
  void Arenas(const RankClass& rank_class) {
    struct Extent {
      int64_t begin, end;
      int pool;
    };
    std::array<std::vector<Extent>, kMemoryKindCount> extents;
    for (size_t p = 0; p < plan_.pools.size(); ++p) {
      const int64_t slots = rank_class.pool_slots[p];
      const int64_t base = rank_class.pool_bases[p];
      if (slots < 0 || !Sane(base) || base % kAlignment != 0) {
        return Bad(absl::StrCat("stage ", rank_class.stage, ": pool ", plan_.pools[p].name,
                                " is placed at ", base, " with ", Counted(slots, "slot")));
      }
      if (slots == 0) continue;
      const int64_t end = Plus(base, Times(slots, plan_.pools[p].stride));
      extents[static_cast<int>(plan_.pools[p].kind)].push_back({base, end, static_cast<int>(p)});
    }
    for (int k = 0; k < kMemoryKindCount; ++k) {
      std::vector<Extent>& list = extents[k];
      std::sort(list.begin(), list.end(), [](const Extent& a, const Extent& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
      });
      int64_t end = 0;
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].begin != end) {
          report_.Add(
              list[i].begin < end ? "overlap" : "arena",
              absl::StrCat("stage ", rank_class.stage, ": pool ", plan_.pools[list[i].pool].name,
                           " begins at ", list[i].begin, ", the pools before it end at ", end));
        }
        end = std::max(end, list[i].end);
      }
      const char* kind = MemoryKindName(static_cast<MemoryKind>(k));
      if (rank_class.arena_bytes[k] != end) {
        report_.Add("arena", absl::StrCat("stage ", rank_class.stage, ": the ", kind, " arena has ",
                                          Counted(rank_class.arena_bytes[k], "byte"),
                                          ", its pools end at ", end));
      }
    }
  }

  const Plan& plan_;
  Report& report_;
};

}  // namespace

std::string Where(const Plan& plan, int block, int instruction) {
  const Block& b = plan.blocks[block];
  return absl::StrCat("block ", b.name, ", instruction ", instruction, " (",
                      TraitsOf(b.instructions[instruction].opcode).text, ")");
}

void CheckStructure(const Plan& plan, Report& report) { StructureCheck(plan, report).Run(); }

}  // namespace planc::verifying
