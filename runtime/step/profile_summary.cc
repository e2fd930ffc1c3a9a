#include "runtime/step/profile_summary.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/matmul.h"
#include "runtime/step/workspace.h"

namespace planc {
namespace {

bool Communicates(const Instruction& instruction) {
  return FamilyOf(instruction.opcode) == OpFamily::kCommunication;
}

double ProductSeconds(const Plan& plan, const Instruction& instruction, const MachineRates& rates) {
  if (instruction.operands.empty()) return 0;
  const DType dtype = plan.buffers[instruction.operands[0].buffer].dtype;
  const double rate = dtype == DType::kBF16 ? rates.bf16_flops : rates.fp32_flops;
  return rate > 0 ? instruction.cost.flops / rate : 0;
}

double BytesOf(const Instruction& instruction) {
  return static_cast<double>(instruction.cost.bytes_read + instruction.cost.bytes_written);
}

// What one run of `instruction` adds to a sum.
OpTotal TotalOf(const Plan& plan, const Instruction& instruction, const ProfileEntry& entry,
                const MachineRates& rates) {
  OpTotal total;
  total.calls = 1;
  total.nanoseconds = entry.ended - entry.started;
  total.flops = instruction.cost.flops;
  total.bytes = BytesOf(instruction);
  total.product_seconds = ProductSeconds(plan, instruction, rates);
  total.floor_seconds = FloorSeconds(plan, instruction, rates);
  total.bytes_sent = instruction.cost.bytes_sent;
  if (total.bytes_sent > 0) total.sending_nanoseconds = total.nanoseconds;
  return total;
}

void Add(const OpTotal& one, OpTotal* sum) {
  sum->calls += one.calls;
  sum->nanoseconds += one.nanoseconds;
  sum->flops += one.flops;
  sum->bytes += one.bytes;
  sum->product_seconds += one.product_seconds;
  sum->floor_seconds += one.floor_seconds;
  sum->bytes_sent += one.bytes_sent;
  sum->sending_nanoseconds += one.sending_nanoseconds;
}

// The median of the times between the end of one instruction and the turn of the next.
int64_t MedianDispatch(const std::vector<ProfileEntry>& entries) {
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < entries.size(); ++i) {
    gaps.push_back(entries[i].asked - entries[i - 1].ended);
  }
  if (gaps.empty()) return 0;
  const auto middle = gaps.begin() + static_cast<int64_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

// When this rank computed, and when it communicated, in all and by group.
struct Activity {
  std::vector<TimeInterval> computing;
  std::vector<TimeInterval> communicating;
  std::vector<std::vector<TimeInterval>> by_group;
};

std::vector<TimeInterval> Expose(std::vector<TimeInterval> running,
                                 const std::vector<TimeInterval>& computing,
                                 CommunicationTotal* total) {
  running = UnionOf(std::move(running));
  std::vector<TimeInterval> exposed = DifferenceOf(running, computing);
  total->running = LengthOf(running);
  total->exposed = LengthOf(exposed);
  return exposed;
}

}  // namespace

double FloorSeconds(const Plan& plan, const Instruction& instruction, const MachineRates& rates) {
  if (Communicates(instruction)) return 0;
  const double moving =
      rates.bytes_per_second > 0 ? BytesOf(instruction) / rates.bytes_per_second : 0;
  return std::max(ProductSeconds(plan, instruction, rates), moving);
}

ProfileSummary SummaryOf(const Plan& plan, const RankProfile& profile, const MachineRates& rates) {
  ProfileSummary summary;
  summary.begin = INT64_MAX;
  summary.groups.resize(plan.groups.size());
  Activity activity;
  activity.by_group.resize(plan.groups.size());
  for (int s = 0; s < kStreamCount; ++s) {
    const std::vector<ProfileEntry> entries = profile.streams[s]->Entries();
    if (entries.empty()) continue;
    StreamTotal& stream = summary.streams[s];
    stream.instructions = static_cast<int64_t>(entries.size());
    stream.dropped = profile.streams[s]->dropped();
    stream.nanoseconds = entries.back().ended - entries.front().asked;
    summary.begin = std::min(summary.begin, entries.front().asked);
    summary.end = std::max(summary.end, entries.back().ended);
    for (const ProfileEntry& entry : entries) {
      const Instruction& instruction = InstructionOf(plan, entry);
      const OpTotal one = TotalOf(plan, instruction, entry, rates);
      Add(one, &stream.opcodes[static_cast<int>(instruction.opcode)]);
      Add(one, &summary.families[static_cast<int>(FamilyOf(instruction.opcode))]);
      if (FamilyOf(instruction.opcode) == OpFamily::kProducts) {
        Add(one, &summary.products[host::MatmulShapeText(MatmulShapeOf(plan, instruction))]);
      }
      summary.floor_seconds += one.floor_seconds;
      stream.busy += one.nanoseconds;
      stream.waiting += entry.started - entry.asked;
      const TimeInterval running = {entry.started, entry.ended};
      if (!Communicates(instruction)) {
        activity.computing.push_back(running);
        continue;
      }
      activity.communicating.push_back(running);
      Add(one, &summary.communication.sum);
      if (instruction.group < 0) continue;
      activity.by_group[instruction.group].push_back(running);
      Add(one, &summary.groups[instruction.group].sum);
    }
    stream.dispatch = stream.nanoseconds - stream.busy - stream.waiting;
    stream.median_dispatch = MedianDispatch(entries);
  }
  summary.begin = std::min(summary.begin, summary.end);
  activity.computing = UnionOf(std::move(activity.computing));
  summary.exposed =
      Expose(std::move(activity.communicating), activity.computing, &summary.communication);
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    Expose(std::move(activity.by_group[group]), activity.computing, &summary.groups[group]);
  }
  return summary;
}

}  // namespace planc
