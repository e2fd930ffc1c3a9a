// Canonical text of blocks, calls and instructions.
#include "schemas/plan_text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "schemas/plan.h"

namespace planc {
namespace {

template <typename Row>
std::string NameOf(const std::vector<Row>& table, int index) {
  if (index < 0 || static_cast<size_t>(index) >= table.size()) return absl::StrCat("?", index);
  return table[index].name;
}

// "@binding" where the block binds the pool more than once, so that the name alone is ambiguous.
std::string BindingText(const Block& block, int binding, int pool) {
  if (std::count(block.bindings.begin(), block.bindings.end(), pool) <= 1) return "";
  return absl::StrCat("@", binding);
}

std::string OperandText(const Plan& plan, const Block& block, const Operand& operand) {
  std::string text = NameOf(plan.buffers, operand.buffer);
  if (text[0] == '?') return text;
  const Buffer& buffer = plan.buffers[operand.buffer];
  text += BindingText(block, operand.binding, buffer.pool);
  if (operand.offset != 0 || operand.shard_stride != 0 || operand.bytes != buffer.bytes) {
    text += absl::StrCat("[", operand.offset);
    if (operand.shard_stride != 0) text += absl::StrCat("+dp_shard*", operand.shard_stride);
    text += absl::StrCat(":", operand.bytes, "]");
  }
  return text;
}

std::string EventText(const Plan& plan, const Block& block, const EventRef& reference) {
  const std::string name = NameOf(plan.events, reference.event);
  if (name[0] == '?') return name;
  return name + BindingText(block, reference.binding, plan.events[reference.event].pool);
}

std::string EventList(const Plan& plan, const Block& block, const char* verb,
                      const std::vector<EventRef>& references) {
  std::string text;
  for (const EventRef& reference : references) {
    absl::StrAppend(&text, text.empty() ? absl::StrCat("  ", verb, " ") : ",",
                    EventText(plan, block, reference));
  }
  return text;
}

// "y, rstd = rms_norm_forward(x, w)"; an operand that is updated in place is written `&name`.
std::string ExpressionText(const Plan& plan, const Block& block, const Instruction& instruction) {
  const OpcodeTraits& traits = TraitsOf(instruction.opcode);
  std::vector<std::string> results;
  std::vector<std::string> arguments;
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const std::string text = OperandText(plan, block, instruction.operands[i]);
    const Access access = i < traits.operands.size() ? traits.operands[i].access : Access::kRead;
    if (access == Access::kWrite) {
      results.push_back(text);
    } else {
      arguments.push_back(access == Access::kUpdate ? "&" + text : text);
    }
  }
  const std::string call = absl::StrCat(traits.text, "(", absl::StrJoin(arguments, ", "), ")");
  return results.empty() ? call : absl::StrCat(absl::StrJoin(results, ", "), " = ", call);
}

std::string AttributesText(const Instruction& instruction) {
  const OpcodeTraits& traits = TraitsOf(instruction.opcode);
  std::string text;
  for (size_t i = 0; i < instruction.integers.size(); ++i) {
    const std::string name = i < traits.integers.size() ? traits.integers[i] : "?";
    absl::StrAppend(&text, " ", name, "=", instruction.integers[i]);
  }
  for (size_t i = 0; i < instruction.reals.size(); ++i) {
    const std::string name = i < traits.reals.size() ? traits.reals[i] : "?";
    absl::StrAppend(&text, " ", name, "=", RealText(instruction.reals[i]));
  }
  return text.empty() ? "" : " " + text;
}

std::string CostText(const Cost& cost) {
  std::string text;
  if (cost.flops != 0) absl::StrAppend(&text, " flops=", RealText(cost.flops));
  if (cost.bytes_read != 0) absl::StrAppend(&text, " read=", cost.bytes_read);
  if (cost.bytes_written != 0) absl::StrAppend(&text, " written=", cost.bytes_written);
  if (cost.bytes_sent != 0) absl::StrAppend(&text, " sent=", cost.bytes_sent);
  return text.empty() ? "" : "  #" + text;
}

}  // namespace

std::string RealText(double value) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  return std::string(digits, end.ptr);
}

std::string PoolName(const Plan& plan, int pool) { return NameOf(plan.pools, pool); }

std::string BlockName(const Plan& plan, int block) { return NameOf(plan.blocks, block); }

int64_t MaximumSlots(const Plan& plan, int pool) {
  int64_t most = 0;
  for (const RankClass& rank_class : plan.classes) {
    if (pool >= 0 && static_cast<size_t>(pool) < rank_class.pool_slots.size()) {
      most = std::max<int64_t>(most, rank_class.pool_slots[pool]);
    }
  }
  return most;
}

std::string InstructionText(const Plan& plan, const Block& block, const Instruction& instruction) {
  std::string text =
      absl::StrFormat("%-9s %-16s %s", StreamName(instruction.stream), LabelName(instruction.label),
                      ExpressionText(plan, block, instruction));
  text += AttributesText(instruction);
  if (instruction.group >= 0) text += "  over " + NameOf(plan.groups, instruction.group);
  text += EventList(plan, block, "wait", instruction.waits);
  text += EventList(plan, block, "record", instruction.records);
  return text;
}

std::string CallText(const Plan& plan, const Call& call) {
  std::string text = absl::StrFormat("%-20s", BlockName(plan, call.block));
  if (call.layer >= 0) absl::StrAppend(&text, " layer=", call.layer);
  if (call.microbatch >= 0) absl::StrAppend(&text, " mb=", call.microbatch);
  const bool known = call.block >= 0 && static_cast<size_t>(call.block) < plan.blocks.size();
  for (size_t i = 0; i < call.slots.size(); ++i) {
    int pool = -1;
    if (known && i < plan.blocks[call.block].bindings.size()) {
      pool = plan.blocks[call.block].bindings[i];
      if (call.slots[i] == 0 && MaximumSlots(plan, pool) <= 1) continue;
    }
    absl::StrAppend(&text, " ", PoolName(plan, pool), "[", call.slots[i], "]");
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string BlockText(const Plan& plan, const Block& block) {
  std::vector<std::string> pools;
  for (int pool : block.bindings) pools.push_back(PoolName(plan, pool));
  std::string text = absl::StrCat("block ", block.name, "(", absl::StrJoin(pools, ", "), ")\n");
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    const Instruction& instruction = block.instructions[i];
    absl::StrAppendFormat(&text, "  %3d %s%s\n", i, InstructionText(plan, block, instruction),
                          CostText(instruction.cost));
  }
  return text;
}

std::string ProgramText(const Plan& plan, const Program& program) {
  std::string text;
  for (const Repeat& repeat : program.steps) {
    const bool group = repeat.count != 1;
    if (group) {
      absl::StrAppend(&text, "    ", repeat.count, " times, mb+", repeat.microbatch_step, "\n");
    }
    for (const Call& call : repeat.calls) {
      absl::StrAppend(&text, group ? "      " : "    ", CallText(plan, call), "\n");
    }
  }
  return text;
}

std::string PlanText(const Plan& plan) {
  std::string text = TablesText(plan);
  for (const Block& block : plan.blocks) absl::StrAppend(&text, "\n", BlockText(plan, block));
  for (const RankClass& rank_class : plan.classes) {
    absl::StrAppend(&text, "\n", ClassText(plan, rank_class));
  }
  return text;
}

}  // namespace planc
