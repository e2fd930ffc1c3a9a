#include "runtime/step/stream_runner.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/step/allocation_scope.h"
#include "schemas/status.h"

namespace planc {

std::string PositionText(const Plan& plan, const PreparedCall& call, int microbatch,
                         int instruction) {
  const Block& block = plan.blocks[call.block];
  std::string text = absl::StrCat("call ", block.name);
  if (call.layer >= 0) absl::StrAppend(&text, " layer ", call.layer);
  if (microbatch >= 0) absl::StrAppend(&text, " microbatch ", microbatch);
  absl::StrAppend(&text, ", instruction ", instruction, ": ",
                  InstructionText(plan, block, block.instructions[instruction]));
  return text;
}

StreamRunner::StreamRunner(const Session& session, Stream stream, EventCells* cells)
    : session_(session), stream_(stream), cells_(cells), expected_(session.event_cells(), 0) {
  context_.plan = &session.plan();
  context_.coordinates = session.coordinates();
}

absl::Status StreamRunner::Run(const PreparedProgram& program, const ProgramInputs& inputs,
                               StreamProfile* profile) {
  const ScopedAllocationScope step(AllocationScope::kStep);
  profile_ = profile;
  if (profile_ != nullptr) profile_->Clear();
  std::fill(expected_.begin(), expected_.end(), 0);
  context_.inputs = &inputs;
  for (const PreparedRepeat& repeat : program.repeats) {
    for (int64_t run = 0; run < repeat.count; ++run) {
      for (int32_t c = 0; c < repeat.call_count; ++c) {
        const PreparedCall& call = program.calls[repeat.first_call + c];
        context_.layer = call.layer;
        context_.microbatch = call.microbatch;
        if (call.microbatch >= 0) {
          context_.microbatch += static_cast<int>(run * repeat.microbatch_step);
        }
        PLANC_RETURN_IF_ERROR(RunCall(program, call));
      }
    }
  }
  position_.phase.store(StreamPosition::Phase::kIdle, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status StreamRunner::RunCall(const PreparedProgram& program, const PreparedCall& call) {
  const PreparedBlock& block = session_.block(call.block);
  const int32_t* const slots = program.slots.data() + call.first_slot;
  position_.call.store(&call, std::memory_order_relaxed);
  position_.microbatch.store(context_.microbatch, std::memory_order_relaxed);
  for (const StreamItem& item : block.items[static_cast<int>(stream_)]) {
    if (item.instruction < 0) {
      ++expected_[item.noted.first_cell + slots[item.noted.binding]];
      continue;
    }
    const absl::Status done = RunInstruction(block, item.instruction, slots);
    if (!done.ok()) {
      const ScopedAllocationScope outside(AllocationScope::kOutside);
      const std::string text =
          PositionText(session_.plan(), call, context_.microbatch, item.instruction);
      return WithContext(done, absl::StrCat("stream ", StreamName(stream_), ", ", text));
    }
  }
  return absl::OkStatus();
}

bool StreamRunner::WaitForEvents(const PreparedBlock& block, int32_t index, const int32_t* slots) {
  const EventUses waits = block.waits[index];
  for (int32_t i = waits.begin; i < waits.end; ++i) {
    const EventUse& use = block.event_uses[i];
    const int32_t cell = use.first_cell + slots[use.binding];
    if (!(*cells_)[cell].WaitFor(expected_[cell])) return false;
  }
  return true;
}

absl::Status StreamRunner::RunInstruction(const PreparedBlock& block, int32_t index,
                                          const int32_t* slots) {
  const PreparedInstruction& instruction = block.instructions[index];
  position_.instruction.store(index, std::memory_order_relaxed);
  position_.phase.store(StreamPosition::Phase::kWaiting, std::memory_order_relaxed);
  position_.moves.fetch_add(1, std::memory_order_relaxed);
  const int64_t asked = profile_ == nullptr ? 0 : ProfileClock();
  if (!WaitForEvents(block, index, slots)) return absl::AbortedError("another stream failed");

  position_.phase.store(StreamPosition::Phase::kRunning, std::memory_order_relaxed);
  position_.moves.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < instruction.operand_count; ++i) {
    const PreparedOperand& operand = instruction.operands[i];
    context_.operands[i] = operand.base + slots[operand.binding] * operand.stride;
  }
  const int64_t started = profile_ == nullptr ? 0 : ProfileClock();
  PLANC_RETURN_IF_ERROR(instruction.handler(instruction, context_));
  if (profile_ != nullptr) {
    const PreparedCall* const call = position_.call.load(std::memory_order_relaxed);
    profile_->Add(
        {call->block, index, context_.layer, context_.microbatch, asked, started, ProfileClock()});
  }

  const EventUses records = block.records[index];
  for (int32_t i = records.begin; i < records.end; ++i) {
    const EventUse& use = block.event_uses[i];
    (*cells_)[use.first_cell + slots[use.binding]].Record();
  }
  return absl::OkStatus();
}

}  // namespace planc
