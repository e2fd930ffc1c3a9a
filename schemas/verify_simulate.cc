#include "schemas/verify_simulate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planc::verifying {

Simulator::Simulator(const FlatPlan& flat, Executor& executor, Report& report)
    : flat_(flat), executor_(executor), report_(report) {}

void Simulator::Run(ProgramKind kind) {
  executor_.BeginProgram(kind);
  stages_.clear();
  stages_.resize(flat_.plan->classes.size());
  const int count = static_cast<int>(stages_.size());
  for (int s = 0; s < count; ++s) {
    stages_[s].program = FlattenProgram(flat_, flat_.plan->classes[s], kind);
    stages_[s].clocks.resize(stages_[s].program.records.size());
    report_.certificate().instructions += stages_[s].program.instructions;
    for (int stream = 0; stream < kStreamCount; ++stream) Settle(s, stream);
  }
  for (bool progress = true; progress && report_.ok();) {
    progress = false;
    looks_ += int64_t{count} * kStreamCount;
    if (looks_ > kMaxLooks) {
      return report_.Add("size", "the streams of the plan take too long to follow each other");
    }
    for (int s = 0; s < count; ++s) {
      for (int stream = 0; stream < kStreamCount; ++stream) {
        if (!stages_[s].heads[stream].done && Advance(s, stream)) progress = true;
      }
    }
  }
  for (const Stage& stage : stages_) {
    for (const Head& head : stage.heads) {
      if (!head.done && report_.ok()) return ReportDeadlock();
    }
  }
  executor_.EndProgram(kind);
}

void Simulator::Settle(int s, int stream) {
  Stage& stage = stages_[s];
  Head& head = stage.heads[stream];
  while (head.call < stage.program.calls.size() &&
         head.place >=
             flat_.blocks[stage.program.calls[head.call].block].on_stream[stream].size()) {
    ++head.call;
    head.place = 0;
  }
  head.done = head.call >= stage.program.calls.size();
  head.position = stage.program.instructions;
  if (head.done) return;
  const FlatCall& call = stage.program.calls[head.call];
  const FlatBlock& block = flat_.blocks[call.block];
  const int index = block.on_stream[stream][head.place];
  head.instruction = &flat_.instructions[block.first_instruction + index];
  head.position = call.first_instruction + index;
}

Site Simulator::SiteAt(int s, int stream) {
  const Head& head = stages_[s].heads[stream];
  const FlatInstruction& instruction = At(s, stream);
  return {s, &executor_.memory(s), &stages_[s].program.calls[head.call], &instruction,
          &flat_.operands[instruction.first_operand]};
}

bool Simulator::IsPassed(int s, const FlatProgram::Record& record) const {
  return stages_[s].heads[record.stream].position > record.instruction;
}

int Simulator::BlockedBy(int s, int stream) const {
  const Stage& stage = stages_[s];
  const FlatInstruction& instruction = At(s, stream);
  const int64_t first =
      stage.program.calls[stage.heads[stream].call].first_wait + instruction.first_wait;
  for (size_t i = 0; i < instruction.source->waits.size(); ++i) {
    const int32_t record = stage.program.wait_record[first + static_cast<int64_t>(i)];
    if (record >= 0 && !IsPassed(s, stage.program.records[record])) {
      return stage.program.records[record].stream;
    }
  }
  return -1;
}

// The head starts: what its waits tell is known to be complete.
void Simulator::Wait(int s, int stream) {
  const Stage& stage = stages_[s];
  const FlatInstruction& instruction = At(s, stream);
  const int64_t first =
      stage.program.calls[stage.heads[stream].call].first_wait + instruction.first_wait;
  for (size_t i = 0; i < instruction.source->waits.size(); ++i) {
    const int32_t record = stage.program.wait_record[first + static_cast<int64_t>(i)];
    if (record >= 0) executor_.memory(s).Wait(stream, stage.clocks[record]);
  }
}

// The head is complete: records its events and moves on.
void Simulator::Finish(int s, int stream) {
  Stage& stage = stages_[s];
  const FlatInstruction& instruction = At(s, stream);
  const Clock& clock = executor_.memory(s).Complete(stream);
  const int64_t first =
      stage.program.calls[stage.heads[stream].call].first_record + instruction.first_record;
  for (size_t i = 0; i < instruction.source->records.size(); ++i) {
    stage.clocks[first + static_cast<int64_t>(i)] = clock;
  }
  ++stage.heads[stream].place;
  Settle(s, stream);
}

bool Simulator::Advance(int s, int stream) {
  bool advanced = false;
  while (!stages_[s].heads[stream].done && report_.ok()) {
    if (BlockedBy(s, stream) >= 0) return advanced;
    const FlatInstruction& instruction = At(s, stream);
    if (instruction.kind == OpcodeKind::kTransfer) {
      if (!TryTransfer(s, stream)) return advanced;
    } else if (instruction.crosses_stages) {
      if (!TryAcross(s, stream)) return advanced;
    } else {
      if (instruction.kind == OpcodeKind::kCollective) ++report_.certificate().collectives;
      Wait(s, stream);
      executor_.Execute(SiteAt(s, stream));
      Finish(s, stream);
    }
    advanced = true;
  }
  return advanced;
}

// A send on one of the streams to a neighbour meets the receive on the neighbour's stream from
// here.
Simulator::Place Simulator::PeerOf(int s, int stream) const {
  const int count = static_cast<int>(stages_.size());
  switch (static_cast<Stream>(stream)) {
    case Stream::kSendNext:
      return {(s + 1) % count, static_cast<int>(Stream::kRecvPrevious)};
    case Stream::kRecvNext:
      return {(s + 1) % count, static_cast<int>(Stream::kSendPrevious)};
    case Stream::kSendPrevious:
      return {(s + count - 1) % count, static_cast<int>(Stream::kRecvNext)};
    default:
      return {(s + count - 1) % count, static_cast<int>(Stream::kSendNext)};
  }
}

bool Simulator::TryTransfer(int s, int stream) {
  const Place peer = PeerOf(s, stream);
  if (stages_[peer.stage].heads[peer.stream].done) return false;
  if (At(peer.stage, peer.stream).kind != OpcodeKind::kTransfer) return false;
  if (BlockedBy(peer.stage, peer.stream) >= 0) return false;
  const bool sends = At(s, stream).opcode == Opcode::kSend;
  const Place from = sends ? Place{s, stream} : peer;
  const Place to = sends ? peer : Place{s, stream};
  Wait(s, stream);
  Wait(peer.stage, peer.stream);
  ++report_.certificate().transfers;
  executor_.ExecuteTransfer(SiteAt(from.stage, from.stream), SiteAt(to.stage, to.stream));
  Finish(s, stream);
  Finish(peer.stage, peer.stream);
  return true;
}

std::vector<int> Simulator::StagesOf(const FlatInstruction& instruction) const {
  const int count = static_cast<int>(stages_.size());
  if (instruction.pipeline_ends) return {0, count - 1};
  std::vector<int> all(count);
  for (int i = 0; i < count; ++i) all[i] = i;
  return all;
}

bool Simulator::SameCollective(const Site& a, const Site& b) {
  const Instruction& x = *a.instruction->source;
  const Instruction& y = *b.instruction->source;
  if (x.opcode == y.opcode && x.integers == y.integers &&
      a.operands[0].dtype == b.operands[0].dtype) {
    return true;
  }
  report_.Add("collective", absl::StrCat("members of a group disagree: ", executor_.Text(a),
                                         " meets ", executor_.Text(b)));
  return false;
}

bool Simulator::TryAcross(int s, int stream) {
  const FlatInstruction& instruction = At(s, stream);
  const std::vector<int> members = StagesOf(instruction);
  if (std::find(members.begin(), members.end(), s) == members.end()) {
    report_.Add("collective", absl::StrCat(executor_.Text(SiteAt(s, stream)),
                                           ": the stage is no member of the group"));
    return false;
  }
  for (int member : members) {
    if (stages_[member].heads[stream].done) return false;
    if (At(member, stream).source->group != instruction.source->group) return false;
    if (BlockedBy(member, stream) >= 0) return false;
  }
  std::vector<Site> sites;
  for (int member : members) {
    sites.push_back(SiteAt(member, stream));
    Wait(member, stream);
    if (!SameCollective(sites[0], sites.back())) return false;
  }
  ++report_.certificate().collectives;
  executor_.ExecuteAcross(sites);
  for (int member : members) Finish(member, stream);
  return true;
}

}  // namespace planc::verifying
