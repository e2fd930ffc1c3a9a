#include "tests/mutation/happens_before.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

constexpr int64_t kMaxOperations = 200000;  // on one rank, in one program
constexpr int64_t kMaxRanks = 64;
constexpr int64_t kMaxAddress = int64_t{1} << 40;

struct Range {
  int kind = 0;  // arena
  int64_t begin = 0;
  int64_t end = 0;
  bool reads = false;
  bool writes = false;
};

// One instruction of one call on one rank.
struct Operation {
  const Instruction* instruction = nullptr;
  int block = 0;
  int index = 0;
  int stream = 0;
  std::vector<Range> ranges;
  std::vector<int> waits;        // operations of the same rank whose records it waits for
  std::vector<int64_t> members;  // of its group, or the peer of a transfer
};

using Clock = std::array<int64_t, kStreamCount>;

// The last accesses of some bytes: how far each stream was, 0 for none.
struct Bytes {
  Clock writes{};
  Clock reads{};
};

struct RankState {
  std::vector<Operation> operations;
  std::array<std::deque<int>, kStreamCount> queues;
  std::vector<bool> done;
  std::vector<Clock> finished;               // clock of each operation that is done
  std::array<Clock, kStreamCount> clocks{};  // what each stream knows to be done
  Clock numbers{};                           // operations done, by stream
  std::array<std::vector<int64_t>, kMemoryKindCount> cuts;
  std::array<std::vector<Bytes>, kMemoryKindCount> memory;
};

bool InRange(int64_t index, size_t size) {
  return index >= 0 && index < static_cast<int64_t>(size);
}

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  OrderFindings Check() {
    int64_t world = 1;
    for (int64_t size : plan_.mesh.size) {
      if (size < 1 || size > kMaxRanks) return Malformed("mesh");
      world *= size;
      if (world > kMaxRanks) return Malformed("mesh");
    }
    for (int program = 0; program < kProgramCount; ++program) {
      ranks_.assign(world, {});
      for (int64_t rank = 0; rank < world; ++rank) {
        if (!Expand(rank, program)) return findings_;
        CutMemory(ranks_[rank]);
      }
      RunAll();
      if (!findings_.stuck.empty()) return findings_;
    }
    return findings_;
  }

 private:
  OrderFindings Malformed(const std::string& what) {
    if (findings_.malformed.empty()) findings_.malformed = what;
    return findings_;
  }
  bool Fail(const std::string& what) {
    Malformed(what);
    return false;
  }

  bool Expand(int64_t rank, int program) {
    const Coordinates at = plan_.mesh.CoordinatesOf(rank);
    const int64_t stage = at[static_cast<int>(Axis::kPp)];
    if (!InRange(stage, plan_.classes.size())) return Fail("no class of a stage");
    const RankClass& rank_class = plan_.classes[stage];
    if (rank_class.pool_slots.size() != plan_.pools.size() ||
        rank_class.pool_bases.size() != plan_.pools.size()) {
      return Fail("pools of a stage");
    }
    RankState& state = ranks_[rank];
    std::map<std::pair<int, int32_t>, int> latest;  // record of an event's cell
    for (const Repeat& repeat : rank_class.programs[program].steps) {
      if (repeat.count < 0 || repeat.count > kMaxOperations) return Fail("count of a repeat");
      for (int64_t i = 0; i < repeat.count; ++i) {
        for (const Call& call : repeat.calls) {
          const int64_t microbatch =
              call.microbatch < 0 ? -1 : call.microbatch + i * repeat.microbatch_step;
          if (!ExpandCall(rank_class, at, call, microbatch, &latest, &state)) return false;
          if (static_cast<int64_t>(state.operations.size()) > kMaxOperations) return Fail("size");
        }
      }
    }
    state.done.assign(state.operations.size(), false);
    state.finished.resize(state.operations.size());
    return true;
  }

  bool ExpandCall(const RankClass& rank_class, const Coordinates& at, const Call& call,
                  int64_t microbatch, std::map<std::pair<int, int32_t>, int>* latest,
                  RankState* state) {
    if (!InRange(call.block, plan_.blocks.size())) return Fail("block of a call");
    const Block& block = plan_.blocks[call.block];
    if (call.slots.size() != block.bindings.size()) return Fail("slots of a call");
    for (size_t i = 0; i < block.instructions.size(); ++i) {
      const Instruction& instruction = block.instructions[i];
      if (!InRange(static_cast<int>(instruction.stream), kStreamCount)) return Fail("stream");
      Operation operation;
      operation.instruction = &instruction;
      operation.block = call.block;
      operation.index = static_cast<int>(i);
      operation.stream = static_cast<int>(instruction.stream);
      if (!ResolveOperands(rank_class, at, call, &operation)) return false;
      if (!ResolveMembers(at, &operation)) return false;
      const int number = static_cast<int>(state->operations.size());
      for (const auto* refs : {&instruction.waits, &instruction.records}) {
        for (const EventRef& ref : *refs) {
          if (!InRange(ref.event, plan_.events.size()) || !InRange(ref.binding, call.slots.size()))
            return Fail("event");
          const std::pair<int, int32_t> cell = {ref.event, call.slots[ref.binding]};
          if (refs == &instruction.records) {
            (*latest)[cell] = number;
          } else if (latest->count(cell) != 0) {
            operation.waits.push_back((*latest)[cell]);
          }
        }
      }
      Describe(call, microbatch, operation);
      state->queues[operation.stream].push_back(number);
      state->operations.push_back(std::move(operation));
    }
    return true;
  }

  template <typename T>
  void Append(const T& value) {
    findings_.operations.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void Describe(const Call& call, int64_t microbatch, const Operation& operation) {
    const Instruction& instruction = *operation.instruction;
    Append(instruction.opcode);
    Append(operation.stream);
    for (int64_t integer : instruction.integers) Append(integer);
    for (double real : instruction.reals) Append(real);
    for (const Range& range : operation.ranges) {
      Append(range.kind);
      Append(range.begin);
      Append(range.end);
    }
    for (int64_t member : operation.members) Append(member);
    if (TraitsOf(instruction.opcode).kind != OpcodeKind::kHost) return;
    Append(microbatch);
    Append(call.layer);
  }

  bool ResolveOperands(const RankClass& rank_class, const Coordinates& at, const Call& call,
                       Operation* operation) {
    const Instruction& instruction = *operation->instruction;
    if (!InRange(static_cast<int>(instruction.opcode), kOpcodeCount)) return Fail("opcode");
    const OpcodeTraits& traits = TraitsOf(instruction.opcode);
    if (instruction.operands.size() != traits.operands.size()) return Fail("operands");
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      const Operand& operand = instruction.operands[k];
      if (!InRange(operand.buffer, plan_.buffers.size())) return Fail("buffer");
      if (!InRange(operand.binding, call.slots.size())) return Fail("binding");
      const Buffer& buffer = plan_.buffers[operand.buffer];
      if (!InRange(buffer.pool, plan_.pools.size())) return Fail("pool");
      const Pool& pool = plan_.pools[buffer.pool];
      const int kind = static_cast<int>(pool.kind);
      if (!InRange(kind, kMemoryKindCount)) return Fail("memory kind");
      const int64_t slot = call.slots[operand.binding];
      for (int64_t number : {rank_class.pool_bases[buffer.pool], pool.stride, buffer.offset,
                             operand.offset, operand.shard_stride, operand.bytes}) {
        if (number < -kMaxAddress || number > kMaxAddress) return Fail("address");
      }
      if (!InRange(slot, rank_class.pool_slots[buffer.pool])) return Fail("slot");
      const int64_t begin = rank_class.pool_bases[buffer.pool] + slot * pool.stride +
                            buffer.offset + operand.offset +
                            at[static_cast<int>(Axis::kDpShard)] * operand.shard_stride;
      const Access access = traits.operands[k].access;
      const Range range = {kind, begin, begin + operand.bytes, access != Access::kWrite,
                           access != Access::kRead};
      if (begin < 0 || operand.bytes <= 0 || range.end > rank_class.arena_bytes[kind]) {
        return Fail("bytes outside of the arena");
      }
      operation->ranges.push_back(range);
    }
    return true;
  }

  bool ResolveMembers(const Coordinates& at, Operation* operation) {
    const Instruction& instruction = *operation->instruction;
    const OpcodeKind kind = TraitsOf(instruction.opcode).kind;
    if (kind == OpcodeKind::kCollective) {
      if (!InRange(instruction.group, plan_.groups.size())) return Fail("group");
      const GroupKind& group = plan_.groups[instruction.group];
      // The ranks that agree with this one on every other axis, in ascending order.
      for (int64_t rank = 0; rank < plan_.mesh.WorldSize(); ++rank) {
        const Coordinates other = plan_.mesh.CoordinatesOf(rank);
        bool member = true;
        for (int a = 0; a < kAxisCount; ++a) {
          member = member && (other[a] == at[a] || (group.axes >> a & 1) != 0);
        }
        const int64_t stage = other[static_cast<int>(Axis::kPp)];
        const int64_t last = plan_.mesh[Axis::kPp] - 1;
        if (member && !(group.pipeline_ends && stage != 0 && stage != last)) {
          operation->members.push_back(rank);
        }
      }
      const int64_t self = plan_.mesh.RankOf(at);
      if (std::count(operation->members.begin(), operation->members.end(), self) == 0) {
        return Fail("a collective of a rank that is no member");
      }
    }
    if (kind == OpcodeKind::kTransfer) {
      if (instruction.integers.size() != 2) return Fail("attributes of a transfer");
      const int64_t stages = plan_.mesh[Axis::kPp];
      const int64_t delta = instruction.integers[1];
      if (delta < -stages || delta > stages) return Fail("delta");
      Coordinates peer = at;
      int64_t& stage = peer[static_cast<int>(Axis::kPp)];
      stage = ((stage + delta) % stages + stages) % stages;
      operation->members = {plan_.mesh.RankOf(peer)};
    }
    return true;
  }

  void CutMemory(RankState& state) {
    for (const Operation& operation : state.operations) {
      for (const Range& range : operation.ranges) {
        state.cuts[range.kind].push_back(range.begin);
        state.cuts[range.kind].push_back(range.end);
      }
    }
    for (int kind = 0; kind < kMemoryKindCount; ++kind) {
      auto& cuts = state.cuts[kind];
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      state.memory[kind].assign(cuts.size(), {});
    }
  }

  const Operation* Head(int64_t rank, int stream) const {
    const RankState& state = ranks_[rank];
    if (state.queues[stream].empty()) return nullptr;
    return &state.operations[state.queues[stream].front()];
  }

  bool IsReady(int64_t rank, int stream) const {
    const Operation* head = Head(rank, stream);
    if (head == nullptr) return false;
    const RankState& state = ranks_[rank];
    return std::all_of(head->waits.begin(), head->waits.end(),
                       [&](int w) { return state.done[w]; });
  }

  // The stream on which the neighbour's end of a transfer is.
  static int PeerStream(int stream) {
    switch (static_cast<Stream>(stream)) {
      case Stream::kSendNext:
        return static_cast<int>(Stream::kRecvPrevious);
      case Stream::kRecvPrevious:
        return static_cast<int>(Stream::kSendNext);
      case Stream::kSendPrevious:
        return static_cast<int>(Stream::kRecvNext);
      default:
        return static_cast<int>(Stream::kSendPrevious);
    }
  }

  // Runs the head of a stream, with all that take part in it; whether it could.
  bool Step(int64_t rank, int stream) {
    if (!IsReady(rank, stream)) return false;
    const Operation& head = *Head(rank, stream);
    const OpcodeKind kind = TraitsOf(head.instruction->opcode).kind;
    if (kind == OpcodeKind::kCollective) {
      const std::vector<int64_t> members = head.members;
      for (int64_t member : members) {
        if (!IsReady(member, stream)) return false;
        const Operation& other = *Head(member, stream);
        if (other.members != members || other.instruction->group != head.instruction->group ||
            other.instruction->opcode != head.instruction->opcode ||
            other.instruction->integers != head.instruction->integers) {
          return false;
        }
      }
      for (int64_t member : members) Finish(member, stream);
      return true;
    }
    if (kind == OpcodeKind::kTransfer) {
      const int64_t peer = head.members[0];
      const int there = PeerStream(stream);
      if (!IsReady(peer, there) || (peer == rank && there == stream)) return false;
      const Operation& other = *Head(peer, there);
      const bool sends = head.instruction->opcode == Opcode::kSend;
      if (other.instruction->opcode != (sends ? Opcode::kRecv : Opcode::kSend) ||
          other.members[0] != rank ||
          other.instruction->integers[0] != head.instruction->integers[0]) {
        return false;
      }
      Finish(rank, stream);
      Finish(peer, there);
      return true;
    }
    Finish(rank, stream);
    return true;
  }

  void RunAll() {
    const int64_t world = static_cast<int64_t>(ranks_.size());
    for (bool progress = true; progress;) {
      progress = false;
      for (int64_t rank = 0; rank < world; ++rank) {
        for (int stream = 0; stream < kStreamCount; ++stream) {
          while (Step(rank, stream)) progress = true;
        }
      }
    }
    for (int64_t rank = 0; rank < world; ++rank) {
      for (int stream = 0; stream < kStreamCount; ++stream) {
        const Operation* head = Head(rank, stream);
        if (head != nullptr && findings_.stuck.empty()) findings_.stuck = Text(rank, *head);
      }
    }
  }

  void Finish(int64_t rank, int stream) {
    RankState& state = ranks_[rank];
    const int number = state.queues[stream].front();
    const Operation& operation = state.operations[number];
    Clock& clock = state.clocks[stream];
    for (int wait : operation.waits) {
      for (int s = 0; s < kStreamCount; ++s) clock[s] = std::max(clock[s], state.finished[wait][s]);
    }
    const int64_t now = ++state.numbers[stream];
    for (const Range& range : operation.ranges) {
      Touch(state, range, stream, now, clock, rank, operation);
    }
    clock[stream] = now;
    state.finished[number] = clock;
    state.done[number] = true;
    state.queues[stream].pop_front();
  }

  void Touch(RankState& state, const Range& range, int stream, int64_t now, const Clock& clock,
             int64_t rank, const Operation& operation) {
    const auto& cuts = state.cuts[range.kind];
    const size_t first = std::lower_bound(cuts.begin(), cuts.end(), range.begin) - cuts.begin();
    for (size_t c = first; cuts[c] < range.end; ++c) {
      Bytes& bytes = state.memory[range.kind][c];
      for (int s = 0; s < kStreamCount; ++s) {
        if (s == stream) continue;  // stream order
        const bool conflict =
            bytes.writes[s] > clock[s] || (range.writes && bytes.reads[s] > clock[s]);
        if (conflict && findings_.race.empty()) {
          findings_.race =
              absl::StrCat(Text(rank, operation), ", arena ", range.kind, " byte ", cuts[c],
                           " against stream ", StreamName(static_cast<Stream>(s)));
        }
      }
      if (range.writes) bytes.writes[stream] = now;
      if (range.reads) bytes.reads[stream] = now;
    }
  }

  std::string Text(int64_t rank, const Operation& operation) const {
    return absl::StrCat("rank ", rank, ", block ", plan_.blocks[operation.block].name,
                        ", instruction ", operation.index, " ",
                        TraitsOf(operation.instruction->opcode).text);
  }

  const Plan& plan_;
  OrderFindings findings_;
  std::vector<RankState> ranks_;
};

}  // namespace

OrderFindings CheckHappensBefore(const Plan& plan) { return Checker(plan).Check(); }

}  // namespace planc
