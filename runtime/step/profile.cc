#include "runtime/step/profile.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schemas/opcode.h"

namespace planc {
namespace {

// Sums over the instructions of one opcode.
struct OpcodeTotal {
  Opcode opcode = Opcode::kZero;
  int64_t calls = 0;
  int64_t nanoseconds = 0;
  double flops = 0;
};

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

const Instruction& InstructionOf(const Plan& plan, const ProfileEntry& entry) {
  return plan.blocks[entry.block].instructions[entry.instruction];
}

// The opcodes of one stream, the longest first.
std::vector<OpcodeTotal> TotalsOf(const Plan& plan, const std::vector<ProfileEntry>& entries) {
  std::vector<OpcodeTotal> totals(kOpcodeCount);
  for (const ProfileEntry& entry : entries) {
    const Instruction& instruction = InstructionOf(plan, entry);
    OpcodeTotal& total = totals[static_cast<int>(instruction.opcode)];
    total.opcode = instruction.opcode;
    ++total.calls;
    total.nanoseconds += entry.ended - entry.started;
    total.flops += instruction.cost.flops;
  }
  std::erase_if(totals, [](const OpcodeTotal& total) { return total.calls == 0; });
  std::stable_sort(totals.begin(), totals.end(), [](const OpcodeTotal& a, const OpcodeTotal& b) {
    return a.nanoseconds > b.nanoseconds;
  });
  return totals;
}

void AppendSlice(const Plan& plan, int64_t rank, int stream, const ProfileEntry& entry,
                 int64_t origin, std::string* json) {
  const Instruction& instruction = InstructionOf(plan, entry);
  absl::StrAppendFormat(
      json,
      ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,"
      "\"dur\":%.3f,\"args\":{\"block\":\"%s\",\"instruction\":%d,\"layer\":%d,\"microbatch\":%d}}",
      rank, stream, TraitsOf(instruction.opcode).text, LabelName(instruction.label),
      static_cast<double>(entry.started - origin) * 1e-3,
      static_cast<double>(entry.ended - entry.started) * 1e-3, plan.blocks[entry.block].name,
      entry.instruction, entry.layer, entry.microbatch);
}

}  // namespace

int64_t ProfileClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<ProfileEntry> StreamProfile::Entries() const {
  const int64_t capacity = static_cast<int64_t>(entries_.size());
  std::vector<ProfileEntry> ordered;
  for (int64_t i = std::max<int64_t>(0, added_ - capacity); i < added_; ++i) {
    ordered.push_back(entries_[static_cast<size_t>(i % capacity)]);
  }
  return ordered;
}

int64_t StreamProfile::dropped() const {
  return std::max<int64_t>(0, added_ - static_cast<int64_t>(entries_.size()));
}

RankProfile::RankProfile(int64_t capacity_per_stream) {
  for (auto& stream : streams) stream = std::make_unique<StreamProfile>(capacity_per_stream);
}

std::string ChromeTrace(const Plan& plan, int64_t rank, const RankProfile& profile) {
  std::array<std::vector<ProfileEntry>, kStreamCount> entries;
  int64_t origin = INT64_MAX;
  for (int stream = 0; stream < kStreamCount; ++stream) {
    entries[stream] = profile.streams[stream]->Entries();
    if (!entries[stream].empty()) origin = std::min(origin, entries[stream].front().asked);
  }
  std::string json = absl::StrFormat(
      "[{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d\"}}", rank,
      rank);
  for (int stream = 0; stream < kStreamCount; ++stream) {
    if (entries[stream].empty()) continue;
    absl::StrAppendFormat(&json,
                          ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\","
                          "\"args\":{\"name\":\"%s\"}}",
                          rank, stream, StreamName(static_cast<Stream>(stream)));
    for (const ProfileEntry& entry : entries[stream]) {
      AppendSlice(plan, rank, stream, entry, origin, &json);
    }
  }
  return json + "]\n";
}

std::string ProfileTable(const Plan& plan, const RankProfile& profile) {
  std::string text;
  for (int stream = 0; stream < kStreamCount; ++stream) {
    const std::vector<ProfileEntry> entries = profile.streams[stream]->Entries();
    if (entries.empty()) continue;
    const int64_t whole = std::max<int64_t>(1, entries.back().ended - entries.front().asked);
    absl::StrAppendFormat(&text, "stream %s: %.6f s\n", StreamName(static_cast<Stream>(stream)),
                          Seconds(whole));
    absl::StrAppendFormat(&text, "  %-26s %9s %12s %7s %10s\n", "opcode", "calls", "seconds",
                          "share", "GFLOP/s");
    int64_t busy = 0;
    for (const OpcodeTotal& total : TotalsOf(plan, entries)) {
      busy += total.nanoseconds;
      absl::StrAppendFormat(
          &text, "  %-26s %9d %12.6f %6.2f%% %10.2f\n", TraitsOf(total.opcode).text, total.calls,
          Seconds(total.nanoseconds),
          100.0 * static_cast<double>(total.nanoseconds) / static_cast<double>(whole),
          total.flops / std::max(1e-9, Seconds(total.nanoseconds)) * 1e-9);
    }
    int64_t waiting = 0;
    for (const ProfileEntry& entry : entries) waiting += entry.started - entry.asked;
    const auto line = [&](const char* name, int64_t nanoseconds) {
      absl::StrAppendFormat(&text, "  %-26s %9s %12.6f %6.2f%%\n", name, "", Seconds(nanoseconds),
                            100.0 * static_cast<double>(nanoseconds) / static_cast<double>(whole));
    };
    line("waiting for events", waiting);
    line("dispatch", whole - busy - waiting);
    const int64_t dropped = profile.streams[stream]->dropped();
    if (dropped > 0) absl::StrAppendFormat(&text, "  (%d earlier instructions dropped)\n", dropped);
  }
  return text;
}

}  // namespace planc
