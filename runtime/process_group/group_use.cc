#include "runtime/process_group/group_use.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

// One kind of transfer over the pp axis: the stream that sends, the one that receives at the other
// end, and how many stages ahead that is.
struct TransferKind {
  const char* name;
  Stream send;
  Stream receive;
  int64_t delta;
};
constexpr TransferKind kTransferKinds[] = {
    {"next", Stream::kSendNext, Stream::kRecvPrevious, 1},
    {"prev", Stream::kSendPrevious, Stream::kRecvNext, -1},
};

bool IsTransfer(Stream stream) { return stream != Stream::kCompute && stream != Stream::kData; }

// Streams on which a program of `rank_class` uses `group`.
std::set<Stream> StreamsInUse(const Plan& plan, const RankClass& rank_class, int group) {
  std::set<int> blocks;
  for (const Program& program : rank_class.programs) {
    for (const Repeat& repeat : program.steps) {
      for (const Call& call : repeat.calls) blocks.insert(call.block);
    }
  }
  std::set<Stream> streams;
  for (const int block : blocks) {
    for (const Instruction& instruction : plan.blocks[block].instructions) {
      if (instruction.group == group) streams.insert(instruction.stream);
    }
  }
  return streams;
}

int64_t StageOf(const Plan& plan, int64_t rank) {
  return plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kPp)];
}

// The connections of `rank` over which all members of a group work together, one for each stream.
void AddCollectives(const Plan& plan, int64_t rank, int group, const std::vector<int64_t>& members,
                    std::vector<GroupConnection>* connections) {
  // Members on other stages run other programs; a connection needs all of its members.
  std::set<Stream> streams;
  for (const int64_t member : members) {
    streams.merge(StreamsInUse(plan, plan.classes[StageOf(plan, member)], group));
  }
  for (const Stream stream : streams) {
    if (IsTransfer(stream)) continue;
    GroupConnection connection;
    connection.name = absl::StrCat(plan.groups[group].name, "/", StreamName(stream));
    connection.use = {group, stream};
    const auto self = std::find(members.begin(), members.end(), rank);
    connection.membership = {connection.name, members, self - members.begin()};
    connections->push_back(std::move(connection));
  }
}

// The connections of `rank` with its pipeline neighbours, one for each direction of each pair: two
// streams of a rank never share one, so that neither waits for the other.
void AddTransfers(const Plan& plan, int64_t rank, int group,
                  std::vector<GroupConnection>* connections) {
  const int64_t stages = plan.mesh[Axis::kPp];
  const int64_t own = StageOf(plan, rank);
  for (const TransferKind& kind : kTransferKinds) {
    // By sending stage: in a ring, neighbours that connect in one order never wait in a circle.
    for (int64_t from = 0; from < stages; ++from) {
      const int64_t to = (from + kind.delta + stages) % stages;
      if (own != from && own != to) continue;
      if (StreamsInUse(plan, plan.classes[from], group).count(kind.send) == 0 &&
          StreamsInUse(plan, plan.classes[to], group).count(kind.receive) == 0) {
        continue;
      }
      Coordinates other = plan.mesh.CoordinatesOf(rank);
      other[static_cast<int>(Axis::kPp)] = own == from ? to : from;
      const int64_t peer = plan.mesh.RankOf(other);
      GroupConnection connection;
      connection.name =
          absl::StrCat(plan.groups[group].name, "/", kind.name, " ", from, " to ", to);
      connection.use = {group, own == from ? kind.send : kind.receive};
      connection.membership = {
          connection.name, {std::min(rank, peer), std::max(rank, peer)}, rank < peer ? 0 : 1};
      connections->push_back(std::move(connection));
    }
  }
}

}  // namespace

std::vector<GroupConnection> ConnectionsOf(const Plan& plan, int64_t rank) {
  std::vector<GroupConnection> connections;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group) {
    const std::vector<int64_t> members = GroupMembers(plan.mesh, plan.groups[group], rank);
    if (members.size() < 2) continue;
    AddCollectives(plan, rank, group, members, &connections);
    AddTransfers(plan, rank, group, &connections);
  }
  return connections;
}

}  // namespace planc
