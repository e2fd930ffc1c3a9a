#include "schemas/verify_flat.h"

#include <algorithm>
#include <cstring>

#include "schemas/verify_shapes.h"

namespace planc::verifying {
namespace {

// `chunk` is this rank's chunk of `whole`, in place.
bool IsOwnChunk(const FlatOperand& chunk, const FlatOperand& whole) {
  return chunk.tile && !whole.tile && chunk.stride == chunk.bytes && chunk.begin == whole.begin &&
         chunk.end == whole.end;
}

// Operands of one instruction that may be exactly the same memory, or for collectives overlap.
bool MayShare(Opcode opcode, const FlatOperand& written, const FlatOperand& other, int written_at,
              int other_at) {
  const auto pair = [&](int w, int o) { return written_at == w && other_at == o; };
  const bool same =
      written.begin == other.begin && written.end == other.end && written.tile == other.tile;
  switch (opcode) {
    case Opcode::kRmsNormForward:
      return same && pair(2, 0);
    case Opcode::kLayerNormForward:
      return same && pair(3, 0);
    case Opcode::kRmsNormBackward:
      return same && (pair(4, 0) || pair(4, 1));
    case Opcode::kLayerNormBackward:
      return same && (pair(5, 0) || pair(5, 1));
    case Opcode::kHeadNormForward:
      return same && pair(3, 0);
    case Opcode::kSwigluBackward:
      return same && pair(2, 0);
    case Opcode::kGeluForward:
      return same && pair(1, 0);
    case Opcode::kGeluBackward:
    case Opcode::kAdd:
      return same && (pair(2, 0) || pair(2, 1));
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
      return IsOwnChunk(written.tile ? written : other, written.tile ? other : written);
    default:
      return false;
  }
}

void FindAliases(const FlatPlan& flat, FlatInstruction& instruction) {
  const FlatOperand* operands = &flat.operands[instruction.first_operand];
  for (int a = 0; a < instruction.operand_count; ++a) {
    if (operands[a].access == Access::kRead) continue;
    for (int b = 0; b < instruction.operand_count; ++b) {
      const bool b_written = operands[b].access != Access::kRead;
      if (a == b || (b_written && b < a)) continue;
      if (operands[a].pool != operands[b].pool || operands[a].begin >= operands[b].end ||
          operands[b].begin >= operands[a].end) {
        continue;
      }
      if (MayShare(instruction.opcode, operands[a], operands[b], a, b)) continue;
      instruction.aliases.push_back({a, b});
    }
  }
}

uint8_t CodeOf(const AxisLayout& layout) {
  switch (layout.kind) {
    case AxisLayout::Kind::kReplicated:
      return kReplicated;
    case AxisLayout::Kind::kPartialSum:
      return kPartialSum;
    case AxisLayout::Kind::kPartialMax:
      return kPartialMax;
    case AxisLayout::Kind::kShard:
      break;
  }
  return layout.dim == 0 ? kRows : layout.dim == 1 ? kColumns : kOtherDimension;
}

FlatOperand FlattenOperand(const Plan& plan, const Operand& operand, Access access,
                           const OperandShape& shape) {
  const Buffer& buffer = plan.buffers[operand.buffer];
  const int64_t coordinates = plan.mesh[Axis::kDpShard];
  FlatOperand flat;
  flat.buffer = operand.buffer;
  flat.pool = buffer.pool;
  flat.binding = operand.binding;
  flat.tile = operand.shard_stride != 0 && coordinates > 1;
  flat.stride = flat.tile ? operand.shard_stride : 0;
  flat.bytes = operand.bytes;
  flat.begin = buffer.offset + operand.offset;
  flat.end = flat.begin + flat.stride * (coordinates - 1) + operand.bytes;
  flat.dtype = buffer.dtype;
  flat.access = access;
  flat.scratch = shape.rule == ElementRule::kScratch;
  flat.rows = shape.rows < 0 || shape.more_rows || flat.scratch
                  ? operand.bytes / SizeOf(buffer.dtype) / std::max<int64_t>(shape.columns, 1)
                  : shape.rows;
  flat.columns = shape.columns;
  for (Axis axis : kAllAxes) flat.declared[static_cast<int>(axis)] = CodeOf(buffer.layout[axis]);
  return flat;
}

uint64_t Bits(double real) {
  uint64_t bits = 0;
  std::memcpy(&bits, &real, sizeof bits);
  return bits;
}

FlatInstruction FlattenInstruction(FlatPlan& flat, int b, int i) {
  const Plan& plan = *flat.plan;
  const Instruction& source = plan.blocks[b].instructions[i];
  const OpcodeTraits& traits = TraitsOf(source.opcode);
  FlatInstruction result;
  result.source = &source;
  result.block = b;
  result.index = i;
  result.opcode = source.opcode;
  result.kind = traits.kind;
  result.stream = static_cast<int>(source.stream);
  if (source.group >= 0) {
    const GroupKind& group = plan.groups[source.group];
    result.group_axes = group.axes;
    result.pipeline_ends = group.pipeline_ends;
    result.crosses_stages = (group.axes & AxisBit(Axis::kPp)) != 0 && plan.mesh[Axis::kPp] > 1;
  }
  result.identity = Mix(0, static_cast<uint64_t>(source.opcode));
  for (int64_t v : source.integers)
    result.identity = Mix(result.identity, static_cast<uint64_t>(v));
  for (double v : source.reals) result.identity = Mix(result.identity, Bits(v));
  result.first_operand = static_cast<int>(flat.operands.size());
  result.operand_count = static_cast<int>(source.operands.size());
  const auto shapes = ShapesOf(source.opcode, source.integers.data(), 1, 1);
  for (int k = 0; k < result.operand_count; ++k) {
    flat.operands.push_back(
        FlattenOperand(plan, source.operands[k], traits.operands[k].access, shapes[k]));
    if (result.kind == OpcodeKind::kCollective && !flat.operands.back().scratch) {
      FlatOperand& operand = flat.operands.back();
      operand.rows = operand.bytes / SizeOf(operand.dtype);
    }
  }
  FindAliases(flat, result);
  return result;
}

// Cuts every pool where operands begin and end, and numbers the cells they cover.
void CutPools(FlatPlan& flat) {
  flat.cuts.resize(flat.plan->pools.size());
  for (const FlatOperand& operand : flat.operands) {
    flat.cuts[operand.pool].push_back(operand.begin);
    flat.cuts[operand.pool].push_back(operand.end);
  }
  for (const Unit& unit : flat.plan->units) {
    for (int b : {unit.first_moment, unit.second_moment}) {
      const Buffer& buffer = flat.plan->buffers[b];
      flat.cuts[buffer.pool].push_back(buffer.offset);
      flat.cuts[buffer.pool].push_back(buffer.offset + buffer.bytes);
    }
  }
  for (std::vector<int64_t>& cuts : flat.cuts) {
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    flat.pool_cells.push_back(cuts.empty() ? 0 : static_cast<int>(cuts.size()) - 1);
  }
  for (FlatOperand& operand : flat.operands) {
    const std::vector<int64_t>& cuts = flat.cuts[operand.pool];
    const auto index = [&](int64_t at) {
      return static_cast<int>(std::lower_bound(cuts.begin(), cuts.end(), at) - cuts.begin());
    };
    operand.first_cell = index(operand.begin);
    operand.last_cell = index(operand.end);
  }
}

}  // namespace

uint64_t Mix(uint64_t hash, uint64_t value) {
  uint64_t h = (hash ^ value) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u;
  return h ^ (h >> 32) ^ 0x2545F4914F6CDD1Du;
}

FlatPlan Flatten(const Plan& plan) {
  FlatPlan flat;
  flat.plan = &plan;
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    FlatBlock block;
    block.first_instruction = static_cast<int>(flat.instructions.size());
    block.count = static_cast<int>(plan.blocks[b].instructions.size());
    for (int i = 0; i < block.count; ++i) {
      FlatInstruction instruction = FlattenInstruction(flat, static_cast<int>(b), i);
      instruction.first_wait = block.waits;
      instruction.first_record = block.records;
      block.waits += static_cast<int>(instruction.source->waits.size());
      block.records += static_cast<int>(instruction.source->records.size());
      block.on_stream[instruction.stream].push_back(i);
      flat.instructions.push_back(std::move(instruction));
    }
    flat.blocks.push_back(std::move(block));
  }
  CutPools(flat);
  return flat;
}

FlatProgram FlattenProgram(const FlatPlan& flat, const RankClass& rank_class, ProgramKind kind) {
  const Plan& plan = *flat.plan;
  FlatProgram program;
  // Latest record of each event cell; cells of one event lie together.
  std::vector<int64_t> first_cell;
  int64_t cells = 0;
  for (const Event& event : plan.events) {
    first_cell.push_back(cells);
    cells += rank_class.pool_slots[event.pool];
  }
  std::vector<int32_t> latest(cells, -1);
  const auto add = [&](const Call& call, int microbatch) {
    const FlatBlock& block = flat.blocks[call.block];
    program.calls.push_back({call.block, call.layer, microbatch, call.slots.data(),
                             program.instructions, static_cast<int64_t>(program.wait_record.size()),
                             static_cast<int64_t>(program.records.size())});
    for (int i = 0; i < block.count; ++i) {
      const FlatInstruction& instruction = flat.instructions[block.first_instruction + i];
      for (const EventRef& ref : instruction.source->waits) {
        program.wait_record.push_back(latest[first_cell[ref.event] + call.slots[ref.binding]]);
      }
      for (const EventRef& ref : instruction.source->records) {
        latest[first_cell[ref.event] + call.slots[ref.binding]] =
            static_cast<int32_t>(program.records.size());
        program.records.push_back({program.instructions + i, instruction.stream});
      }
    }
    program.instructions += block.count;
  };
  for (const Repeat& repeat : rank_class.programs[static_cast<int>(kind)].steps) {
    for (int64_t i = 0; i < repeat.count && !repeat.calls.empty(); ++i) {
      for (const Call& call : repeat.calls) {
        add(call, call.microbatch < 0
                      ? -1
                      : static_cast<int>(call.microbatch + i * repeat.microbatch_step));
      }
    }
  }
  return program;
}

int64_t CountCells(const FlatPlan& flat) {
  int64_t total = 0;
  for (const RankClass& rank_class : flat.plan->classes) {
    for (size_t p = 0; p < flat.pool_cells.size(); ++p) {
      total = Plus(total, Times(flat.pool_cells[p], rank_class.pool_slots[p]));
    }
  }
  return total;
}

int64_t CountAccesses(const FlatPlan& flat) {
  std::vector<int64_t> of_block;
  for (const FlatBlock& block : flat.blocks) {
    int64_t accesses = 0;
    for (int i = 0; i < block.count; ++i) {
      const FlatInstruction& instruction = flat.instructions[block.first_instruction + i];
      for (int k = 0; k < instruction.operand_count; ++k) {
        const FlatOperand& operand = flat.operands[instruction.first_operand + k];
        accesses += operand.last_cell - operand.first_cell;
      }
    }
    of_block.push_back(accesses);
  }
  int64_t total = 0;
  for (const RankClass& rank_class : flat.plan->classes) {
    for (const Program& program : rank_class.programs) {
      for (const Repeat& repeat : program.steps) {
        for (const Call& call : repeat.calls) {
          total = Plus(total, Times(repeat.count, of_block[call.block]));
        }
      }
    }
  }
  return total;
}

}  // namespace planc::verifying
