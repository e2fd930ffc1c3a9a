#include "runtime/step/prepared_program.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/step/handlers.h"
#include "runtime/step/operand_bytes.h"
#include "runtime/step/operand_types.h"
#include "schemas/status.h"

namespace planc {
namespace {

absl::Status CheckCounts(const Instruction& instruction) {
  const OpcodeTraits& traits = TraitsOf(instruction.opcode);
  if (instruction.operands.size() != traits.operands.size() ||
      instruction.integers.size() != traits.integers.size() ||
      instruction.reals.size() != traits.reals.size()) {
    return absl::InternalError(
        absl::StrCat(traits.text, " has ", instruction.operands.size(), " operands, ",
                     instruction.integers.size(), " integers and ", instruction.reals.size(),
                     " reals; its row in opcode.def has ", traits.operands.size(), ", ",
                     traits.integers.size(), " and ", traits.reals.size()));
  }
  if (traits.operands.size() > kMaxOperands || traits.integers.size() > kMaxIntegers ||
      traits.reals.size() > kMaxReals) {
    return absl::InternalError(absl::StrCat(traits.text, ": prepared_instruction.h is too small"));
  }
  return absl::OkStatus();
}

PreparedOperand PrepareOperand(const Plan& plan, const Operand& operand, const RankTables& tables,
                               int64_t dp_shard) {
  const Buffer& buffer = plan.buffers[operand.buffer];
  PreparedOperand prepared;
  prepared.base = tables.pool_memory[buffer.pool] + buffer.offset + operand.offset +
                  dp_shard * operand.shard_stride;
  prepared.stride = plan.pools[buffer.pool].stride;
  prepared.binding = operand.binding;
  prepared.dtype = buffer.dtype;
  prepared.bytes = operand.bytes;
  return prepared;
}

// Appends the uses of `refs`. A stream does what it records in order anyway, so waits for the
// stream's own events are left out.
EventUses AppendUses(const Plan& plan, const std::vector<EventRef>& refs, const RankTables& tables,
                     const Stream* skip_events_of, std::vector<EventUse>* uses) {
  EventUses range;
  range.begin = static_cast<int32_t>(uses->size());
  for (const EventRef& ref : refs) {
    if (skip_events_of != nullptr && plan.events[ref.event].stream == *skip_events_of) continue;
    uses->push_back({tables.first_cell[ref.event], ref.binding});
  }
  range.end = static_cast<int32_t>(uses->size());
  return range;
}

// For every stream, the instructions it carries out and the records of other streams it notes.
void FillItems(const Block& block, PreparedBlock* prepared) {
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    const int own = static_cast<int>(block.instructions[i].stream);
    prepared->items[own].push_back({static_cast<int32_t>(i), {}});
    for (int32_t use = prepared->records[i].begin; use < prepared->records[i].end; ++use) {
      for (int stream = 0; stream < kStreamCount; ++stream) {
        if (stream != own) prepared->items[stream].push_back({-1, prepared->event_uses[use]});
      }
    }
  }
}

}  // namespace

RankTables TablesOf(const Plan& plan, const RankClass& rank_class) {
  RankTables tables;
  for (const Event& event : plan.events) {
    tables.first_cell.push_back(tables.cells);
    tables.cells += rank_class.pool_slots[event.pool];
  }
  tables.pool_memory.resize(plan.pools.size(), nullptr);
  return tables;
}

PreparedProgram PrepareProgram(const Plan& plan, const Program& program) {
  PreparedProgram prepared;
  for (const Repeat& repeat : program.steps) {
    prepared.repeats.push_back({repeat.count, repeat.microbatch_step,
                                static_cast<int32_t>(prepared.calls.size()),
                                static_cast<int32_t>(repeat.calls.size())});
    for (const Call& call : repeat.calls) {
      prepared.calls.push_back(
          {call.block, call.layer, call.microbatch, static_cast<int32_t>(prepared.slots.size())});
      prepared.slots.insert(prepared.slots.end(), call.slots.begin(), call.slots.end());
      for (const Instruction& instruction : plan.blocks[call.block].instructions) {
        prepared.uses_stream[static_cast<int>(instruction.stream)] = true;
      }
    }
  }
  return prepared;
}

std::vector<bool> CalledBlocks(const Plan& plan, const RankClass& rank_class) {
  std::vector<bool> called(plan.blocks.size(), false);
  for (const Program& program : rank_class.programs) {
    for (const Repeat& repeat : program.steps) {
      for (const Call& call : repeat.calls) called[call.block] = true;
    }
  }
  return called;
}

absl::StatusOr<PreparedBlock> PrepareBlock(const Plan& plan, const Block& block,
                                           const RankTables& tables, int64_t dp_shard) {
  PreparedBlock prepared;
  for (const Instruction& instruction : block.instructions) {
    PLANC_RETURN_IF_ERROR(CheckCounts(instruction));
    const int index = static_cast<int>(prepared.instructions.size());
    PLANC_RETURN_IF_ERROR(CheckOperandTypes(plan, block, index));
    PLANC_RETURN_IF_ERROR(CheckOperandBytes(plan, block, index, dp_shard));
    PreparedInstruction& bound = prepared.instructions.emplace_back();
    bound.opcode = instruction.opcode;
    bound.handler = HandlerOf(instruction.opcode);
    bound.operand_count = static_cast<int>(instruction.operands.size());
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      bound.operands[i] = PrepareOperand(plan, instruction.operands[i], tables, dp_shard);
    }
    for (size_t i = 0; i < instruction.integers.size(); ++i) {
      bound.integers[i] = instruction.integers[i];
    }
    for (size_t i = 0; i < instruction.reals.size(); ++i) bound.reals[i] = instruction.reals[i];
    prepared.waits.push_back(
        AppendUses(plan, instruction.waits, tables, &instruction.stream, &prepared.event_uses));
    prepared.records.push_back(
        AppendUses(plan, instruction.records, tables, nullptr, &prepared.event_uses));
  }
  FillItems(block, &prepared);
  return prepared;
}

}  // namespace planc
