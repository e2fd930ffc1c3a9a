#include "runtime/process_group/group_use.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

// The streams that use the same wires as `stream`, the sending one first, and the name of the
// wires.
struct Channel {
  std::string name;
  std::vector<Stream> streams;
};

Channel ChannelOf(Stream stream) {
  switch (stream) {
    case Stream::kSendNext:
    case Stream::kRecvPrevious:
      return {"next", {Stream::kSendNext, Stream::kRecvPrevious}};
    case Stream::kSendPrevious:
    case Stream::kRecvNext:
      return {"prev", {Stream::kSendPrevious, Stream::kRecvNext}};
    case Stream::kCompute:
    case Stream::kData:
      break;
  }
  return {StreamName(stream), {stream}};
}

// Streams on which a program of `rank_class` uses `group`, each replaced by the first of its
// channel.
std::set<Stream> ChannelsInUse(const Plan& plan, const RankClass& rank_class, int group) {
  std::set<int> blocks;
  for (const Program& program : rank_class.programs) {
    for (const Repeat& repeat : program.steps) {
      for (const Call& call : repeat.calls) blocks.insert(call.block);
    }
  }
  std::set<Stream> channels;
  for (const int block : blocks) {
    for (const Instruction& instruction : plan.blocks[block].instructions) {
      if (instruction.group == group) channels.insert(ChannelOf(instruction.stream).streams[0]);
    }
  }
  return channels;
}

}  // namespace

std::vector<GroupConnection> ConnectionsOf(const Plan& plan, int64_t rank) {
  std::vector<GroupConnection> connections;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group) {
    const GroupKind& kind = plan.groups[group];
    const std::vector<int64_t> members = GroupMembers(plan.mesh, kind, rank);
    if (members.size() < 2) continue;
    // Members on other stages run other programs; a connection needs all of its members.
    std::set<int64_t> stages;
    for (const int64_t member : members) {
      stages.insert(plan.mesh.CoordinatesOf(member)[static_cast<int>(Axis::kPp)]);
    }
    std::set<Stream> channels;
    for (const int64_t stage : stages)
      channels.merge(ChannelsInUse(plan, plan.classes[stage], group));
    for (const Stream first : channels) {
      const Channel channel = ChannelOf(first);
      GroupConnection connection;
      connection.name = absl::StrCat(kind.name, "/", channel.name);
      for (const Stream stream : channel.streams) connection.uses.push_back({group, stream});
      const auto self = std::find(members.begin(), members.end(), rank);
      connection.membership = {connection.name, members, self - members.begin()};
      connections.push_back(std::move(connection));
    }
  }
  return connections;
}

}  // namespace planc
