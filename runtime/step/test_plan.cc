#include "runtime/step/test_plan.h"

#include <cstddef>

namespace planc {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

TestPlan::TestPlan(Axis axis, int64_t size) {
  plan_.mesh.size[static_cast<int>(axis)] = size;
  plan_.ranks_per_node = size;
  plan_.blocks.resize(1);
  block().name = "block";
  plan_.classes.resize(static_cast<size_t>(plan_.mesh[Axis::kPp]));
}

int TestPlan::AddBuffer(const std::string& name, MemoryKind kind, DType dtype, int64_t elements,
                        int slots) {
  const int index = static_cast<int>(plan_.buffers.size());
  Buffer buffer;
  buffer.name = name;
  buffer.pool = index;
  buffer.bytes = elements * SizeOf(dtype);
  buffer.dtype = dtype;
  buffer.shape = {elements};
  plan_.buffers.push_back(buffer);
  plan_.pools.push_back({name, kind, RoundUp(buffer.bytes)});
  block().bindings.push_back(index);
  slots_.push_back(slots);
  return index;
}

int TestPlan::AddGroup(const std::string& name, Axis axis) {
  plan_.groups.push_back({name, AxisBit(axis)});
  return static_cast<int>(plan_.groups.size()) - 1;
}

int TestPlan::AddEvent(const std::string& name, int buffer, Stream stream) {
  plan_.events.push_back({name, buffer, stream});
  return static_cast<int>(plan_.events.size()) - 1;
}

Instruction& TestPlan::Add(Opcode opcode, const std::vector<int>& buffers,
                           const std::vector<int64_t>& integers, const std::vector<double>& reals) {
  Instruction instruction;
  instruction.opcode = opcode;
  for (const int buffer : buffers) {
    Operand operand;
    operand.buffer = buffer;
    operand.binding = buffer;
    operand.bytes = plan_.buffers[buffer].bytes;
    instruction.operands.push_back(operand);
  }
  instruction.integers = integers;
  instruction.reals = reals;
  block().instructions.push_back(instruction);
  return block().instructions.back();
}

EventRef TestPlan::Ref(int event) { return {event, plan_.events[event].pool}; }

void TestPlan::SetProgram(ProgramKind kind, const std::vector<std::vector<int32_t>>& slots,
                          int64_t count) {
  Repeat repeat;
  repeat.count = count;
  repeat.microbatch_step = 1;
  for (const std::vector<int32_t>& of_call : slots) repeat.calls.push_back({0, -1, 0, of_call});
  for (RankClass& rank_class : plan_.classes) {
    rank_class.programs[static_cast<int>(kind)].steps.push_back(repeat);
  }
}

const Plan& TestPlan::Finish() {
  for (size_t stage = 0; stage < plan_.classes.size(); ++stage) {
    RankClass& rank_class = plan_.classes[stage];
    rank_class.stage = static_cast<int64_t>(stage);
    rank_class.pool_slots = slots_;
    rank_class.pool_bases.clear();
    rank_class.arena_bytes.fill(0);
    for (size_t pool = 0; pool < plan_.pools.size(); ++pool) {
      int64_t& end = rank_class.arena_bytes[static_cast<int>(plan_.pools[pool].kind)];
      rank_class.pool_bases.push_back(end);
      end += plan_.pools[pool].stride * slots_[pool];
    }
  }
  return plan_;
}

}  // namespace planc
