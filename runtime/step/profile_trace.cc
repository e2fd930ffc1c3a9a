#include "runtime/step/profile_trace.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/step/event_arrows.h"
#include "runtime/step/profile_summary.h"
#include "schemas/opcode.h"

namespace planc {
namespace {

constexpr char kBegin[] = "[\n";
constexpr char kBetween[] = ",\n";
constexpr char kEnd[] = "\n]\n";

// The thread of exposed communication, after those of the streams.
constexpr int kExposedThread = kStreamCount;
constexpr int64_t kShownWait = 1000;  // nanoseconds

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

// Events of one process, as JSON objects.
class TraceWriter {
 public:
  explicit TraceWriter(int64_t process) : process_(process) {}

  // `values`: an object's members, e.g. "\"name\":\"rank 0\"".
  void Metadata(int thread, const char* name, const std::string& values) {
    Begin("M", thread);
    absl::StrAppendFormat(&json_, ",\"name\":\"%s\",\"args\":{%s}}", name, values);
  }

  void Slice(int thread, const char* name, const char* category, const TimeInterval& time,
             const std::string& arguments) {
    Begin("X", thread);
    absl::StrAppendFormat(
        &json_, ",\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}", name,
        category, Microseconds(time.begin), Microseconds(time.end - time.begin), arguments);
  }

  // From the slice that ends at `end` to the one that begins at `begin`.
  void Arrow(int from_thread, int64_t end, int to_thread, int64_t begin) {
    Half("s", from_thread, end - 1, "");  // a slice does not hold its end
    Half("f", to_thread, begin, ",\"bp\":\"e\"");
    ++arrows_;
  }

  std::string Take() { return kBegin + json_ + kEnd; }

 private:
  void Begin(const char* phase, int thread) {
    if (!json_.empty()) json_ += kBetween;
    absl::StrAppendFormat(&json_, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", phase, process_, thread);
  }
  void Half(const char* phase, int thread, int64_t time, const char* more) {
    Begin(phase, thread);
    absl::StrAppendFormat(&json_,
                          ",\"name\":\"event\",\"cat\":\"wait\",\"id\":\"%d.%d\",\"ts\":%.3f%s}",
                          process_, arrows_, Microseconds(time), more);
  }

  const int64_t process_;
  int64_t arrows_ = 0;
  std::string json_;
};

void WriteNames(int64_t rank, const ProfileSummary& summary, TraceWriter* writer) {
  const CommunicationTotal& communication = summary.communication;
  writer->Metadata(0, "process_name", absl::StrFormat("\"name\":\"rank %d\"", rank));
  writer->Metadata(0, "process_sort_index", absl::StrFormat("\"sort_index\":%d", rank));
  writer->Metadata(
      0, "process_labels",
      absl::StrFormat("\"labels\":\"step %.3f ms, communication %.3f ms, exposed %.3f ms\"",
                      1e-3 * Microseconds(summary.nanoseconds()),
                      1e-3 * Microseconds(communication.running),
                      1e-3 * Microseconds(communication.exposed)));
  const auto name_thread = [writer](int thread, const char* name) {
    writer->Metadata(thread, "thread_name", absl::StrFormat("\"name\":\"%s\"", name));
    writer->Metadata(thread, "thread_sort_index", absl::StrFormat("\"sort_index\":%d", thread));
  };
  for (int stream = 0; stream < kStreamCount; ++stream) {
    if (summary.streams[stream].instructions == 0) continue;
    name_thread(stream, StreamName(static_cast<Stream>(stream)));
  }
  if (communication.sum.calls > 0) name_thread(kExposedThread, "exposed communication");
}

void WriteEntry(const Plan& plan, int stream, const ProfileEntry& entry, TraceWriter* writer) {
  const Instruction& instruction = InstructionOf(plan, entry);
  if (entry.started - entry.asked >= kShownWait) {
    writer->Slice(stream, "wait", "wait", {entry.asked, entry.started}, "");
  }
  std::string arguments = absl::StrFormat(
      "\"block\":\"%s\",\"instruction\":%d,\"layer\":%d,\"microbatch\":%d",
      plan.blocks[entry.block].name, entry.instruction, entry.layer, entry.microbatch);
  if (instruction.group >= 0) {
    absl::StrAppendFormat(&arguments, ",\"group\":\"%s\",\"bytes_sent\":%d",
                          plan.groups[instruction.group].name, instruction.cost.bytes_sent);
  }
  writer->Slice(stream, TraitsOf(instruction.opcode).text.c_str(), LabelName(instruction.label),
                {entry.started, entry.ended}, arguments);
}

}  // namespace

std::string ChromeTrace(const Plan& plan, int64_t rank, const RankProfile& profile) {
  // Floors are no part of a trace, so no rates are needed.
  const ProfileSummary summary = SummaryOf(plan, profile, MachineRates());
  StepEntries entries;
  for (int stream = 0; stream < kStreamCount; ++stream) {
    entries[stream] = profile.streams[stream]->Entries();
  }
  TraceWriter writer(rank);
  WriteNames(rank, summary, &writer);
  for (int stream = 0; stream < kStreamCount; ++stream) {
    for (const ProfileEntry& entry : entries[stream]) WriteEntry(plan, stream, entry, &writer);
  }
  for (const TimeInterval& exposed : summary.exposed) {
    writer.Slice(kExposedThread, "exposed", "communication", exposed, "");
  }
  const int64_t stage = plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kPp)];
  for (const EventArrow& arrow : EventArrows(plan, plan.classes[stage], entries)) {
    const ProfileEntry& producer = entries[arrow.producer.stream][arrow.producer.entry];
    const ProfileEntry& waiter = entries[arrow.waiter.stream][arrow.waiter.entry];
    writer.Arrow(arrow.producer.stream, producer.ended, arrow.waiter.stream, waiter.started);
  }
  return writer.Take();
}

std::string ProfileFileStem(int64_t rank) { return absl::StrCat("profile-rank-", rank); }

std::string MergedTrace(const std::vector<std::string>& traces) {
  const size_t frame = sizeof(kBegin) - 1 + sizeof(kEnd) - 1;
  std::string events;
  for (const std::string& trace : traces) {
    if (trace.size() <= frame) continue;
    if (!events.empty()) events += kBetween;
    events.append(trace, sizeof(kBegin) - 1, trace.size() - frame);
  }
  return kBegin + events + kEnd;
}

}  // namespace planc
