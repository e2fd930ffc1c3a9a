#include "planc/schedule.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/catalog/devices.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// One instruction of one stage, with what must be done before it.
struct Node {
  int stage = 0;
  int64_t span = 0;  // in StepPrediction::stages[stage]
  int open = 0;      // predecessors that are not done yet
  int meeting = -1;  // the rendezvous it takes part in
  double ready = 0;
  double seconds = 0;
  std::vector<int> next;
};

// A collective across stages or a transfer: starts when all its members are there.
struct Meeting {
  int missing = 0;
  double ready = 0;
  std::vector<int> members;
};

class Predictor {
 public:
  Predictor(const Plan& plan, const Rates& rates) : plan_(plan), rates_(rates) {}

  absl::StatusOr<StepPrediction> Run() {
    schedule_.stages.resize(plan_.classes.size());
    for (size_t stage = 0; stage < plan_.classes.size(); ++stage) {
      PLANC_RETURN_IF_ERROR(AddStage(static_cast<int>(stage)));
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].open == 0) Arrive(static_cast<int>(i));
    }
    while (!work_.empty()) {
      const int node = work_.back();
      work_.pop_back();
      Finish(node);
    }
    if (done_ != nodes_.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the step cannot finish: ", nodes_.size() - done_, " of ",
                       Counted(nodes_.size(), "instruction"), " wait for ever"));
    }
    return std::move(schedule_);
  }

 private:
  using Cell = std::pair<int, int32_t>;  // event, slot

  absl::Status AddStage(int stage) {
    const Program& program = plan_.classes[stage].programs[static_cast<int>(ProgramKind::kStep)];
    std::vector<int> last(kStreamCount, -1);
    std::map<Cell, int> records;
    std::map<std::pair<int, int>, int> passed;  // (stream, group) -> meetings so far
    absl::Status status;
    ForEachCall(program, [&](const Call& call) {
      if (!status.ok()) return;
      status = CheckCall(call);
      if (!status.ok()) return;
      const Block& block = plan_.blocks[call.block];
      for (size_t i = 0; i < block.instructions.size(); ++i) {
        const Instruction& instruction = block.instructions[i];
        const int id = AddNode(stage, call, static_cast<int>(i), instruction);
        int& previous = last[static_cast<int>(instruction.stream)];
        Depend(id, previous);
        previous = id;
        for (const EventRef& wait : instruction.waits) {
          const auto found = records.find({wait.event, call.slots[wait.binding]});
          if (found != records.end()) Depend(id, found->second);
        }
        for (const EventRef& record : instruction.records) {
          records[{record.event, call.slots[record.binding]}] = id;
        }
        if (instruction.group >= 0) Meet(id, stage, instruction, &passed);
      }
    });
    return status;
  }

  absl::Status CheckCall(const Call& call) const {
    const absl::Status bad = absl::InvalidArgumentError("the step names what the plan lacks");
    if (call.block < 0 || static_cast<size_t>(call.block) >= plan_.blocks.size()) return bad;
    for (const Instruction& instruction : plan_.blocks[call.block].instructions) {
      for (const std::vector<EventRef>* list : {&instruction.waits, &instruction.records}) {
        for (const EventRef& reference : *list) {
          if (reference.binding < 0 ||
              static_cast<size_t>(reference.binding) >= call.slots.size()) {
            return bad;
          }
        }
      }
      if (instruction.group >= static_cast<int>(plan_.groups.size())) return bad;
    }
    return absl::OkStatus();
  }

  int AddNode(int stage, const Call& call, int index, const Instruction& instruction) {
    Node node;
    node.stage = stage;
    node.span = static_cast<int64_t>(schedule_.stages[stage].size());
    node.seconds = Seconds(stage, instruction);
    schedule_.stages[stage].push_back({call.block, index, call.layer, call.microbatch, 0, 0});
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  void Depend(int node, int on) {
    if (on < 0) return;
    nodes_[on].next.push_back(node);
    ++nodes_[node].open;
  }

  double Seconds(int stage, const Instruction& instruction) const {
    const Cost& cost = instruction.cost;
    const double compute = cost.flops / rates_.flops;
    const double memory =
        static_cast<double>(cost.bytes_read + cost.bytes_written) / rates_.memory_bandwidth;
    double sent = 0;
    if (cost.bytes_sent > 0) {
      const bool inside = instruction.group >= 0 && InsideNode(stage, instruction.group);
      sent = static_cast<double>(cost.bytes_sent) /
             (inside ? rates_.link_bandwidth : rates_.network_bandwidth);
    }
    return std::max({compute, memory, sent});
  }

  // Whether the group of the stage's first rank lies on one node.
  bool InsideNode(int stage, int group) const {
    const std::pair<int, int> key(stage, group);
    const auto found = inside_.find(key);
    if (found != inside_.end()) return found->second;
    Coordinates coordinates{};
    coordinates[static_cast<int>(Axis::kPp)] = stage;
    const std::vector<int64_t> members =
        GroupMembers(plan_.mesh, plan_.groups[group], plan_.mesh.RankOf(coordinates));
    const int64_t node_ranks = std::max<int64_t>(1, plan_.ranks_per_node);
    const bool inside =
        members.empty() || members.front() / node_ranks == members.back() / node_ranks;
    inside_[key] = inside;
    return inside;
  }

  // Joins `id` with the instructions of other stages that it needs to meet. A group inside one
  // stage has members that run the same program at the same pace: nothing to wait for.
  void Meet(int id, int stage, const Instruction& instruction,
            std::map<std::pair<int, int>, int>* passed) {
    const GroupKind& group = plan_.groups[instruction.group];
    if ((group.axes & AxisBit(Axis::kPp)) == 0) return;
    const int stream = static_cast<int>(instruction.stream);
    const int turn = (*passed)[{stream, instruction.group}]++;
    const int stages = static_cast<int>(plan_.classes.size());
    const bool send = instruction.opcode == Opcode::kSend;
    std::tuple<int, int, int, int, int> key(instruction.group, stream, -1, 0, turn);
    int members = group.pipeline_ends ? std::min(2, stages) : stages;
    if (send || instruction.opcode == Opcode::kRecv) {
      const int index = IntegerIndex(instruction.opcode, "delta");
      const bool known = static_cast<size_t>(index) < instruction.integers.size();
      const int64_t delta = known ? instruction.integers[index] : 0;
      const int peer = static_cast<int>(((stage + delta) % stages + stages) % stages);
      // A forward channel runs from send_next to recv_prev.
      const bool forward =
          instruction.stream == Stream::kSendNext || instruction.stream == Stream::kRecvPrevious;
      key = {instruction.group, forward ? 1 : 0, send ? stage : peer, send ? peer : stage, turn};
      members = 2;
    }
    const auto [entry, inserted] = index_.try_emplace(key, static_cast<int>(meetings_.size()));
    if (inserted) meetings_.push_back({members, 0, {}});
    meetings_[entry->second].members.push_back(id);
    nodes_[id].meeting = entry->second;
  }

  // `id` has no open predecessors.
  void Arrive(int id) {
    const Node& node = nodes_[id];
    if (node.meeting < 0) {
      work_.push_back(id);
      return;
    }
    Meeting& meeting = meetings_[node.meeting];
    meeting.ready = std::max(meeting.ready, node.ready);
    if (--meeting.missing > 0) return;
    for (int member : meeting.members) {
      nodes_[member].ready = meeting.ready;
      work_.push_back(member);
    }
  }

  void Finish(int id) {
    Node& node = nodes_[id];
    StepSpan& span = schedule_.stages[node.stage][node.span];
    span.begin = node.ready;
    span.end = node.ready + node.seconds;
    schedule_.seconds = std::max(schedule_.seconds, span.end);
    ++done_;
    for (int next : node.next) {
      nodes_[next].ready = std::max(nodes_[next].ready, span.end);
      if (--nodes_[next].open == 0) Arrive(next);
    }
  }

  const Plan& plan_;
  const Rates rates_;
  StepPrediction schedule_;
  std::vector<Node> nodes_;
  std::vector<Meeting> meetings_;
  std::map<std::tuple<int, int, int, int, int>, int> index_;
  mutable std::map<std::pair<int, int>, bool> inside_;
  std::vector<int> work_;
  size_t done_ = 0;
};

}  // namespace

absl::StatusOr<Rates> RatesOf(const Plan& plan) {
  const DeviceSpec* device = FindDevice(plan.job.cluster().device());
  if (device == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("device `", plan.job.cluster().device(), "` is not in the catalogue"));
  }
  const bool bf16 = plan.job.precision().compute() == proto::BF16;
  return Rates{bf16 ? device->bf16_flops : device->fp32_flops, device->memory_bandwidth,
               device->link_bandwidth, device->network_bandwidth};
}

absl::StatusOr<StepPrediction> PredictStep(const Plan& plan, const Rates& rates) {
  return Predictor(plan, rates).Run();
}

}  // namespace planc
