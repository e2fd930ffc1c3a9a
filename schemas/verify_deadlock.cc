// Says why a program cannot go on: follows what each blocked stream waits for until a stream comes
// up again, or until one that will never move.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/verify_simulate.h"

namespace planc::verifying {

// Another stream of the same rank (an event), or a stream of another stage (a communication).
Simulator::Place Simulator::WaitsFor(const Place& place) const {
  const int event = BlockedBy(place.stage, place.stream);
  if (event >= 0) return {place.stage, event};
  const FlatInstruction& instruction = At(place.stage, place.stream);
  if (instruction.kind == OpcodeKind::kTransfer) return PeerOf(place.stage, place.stream);
  if (!instruction.crosses_stages) return place;
  for (int member : StagesOf(instruction)) {
    if (member == place.stage) continue;
    const Place other{member, place.stream};
    if (stages_[member].heads[place.stream].done) return other;
    if (At(member, place.stream).source->group != instruction.source->group ||
        BlockedBy(member, place.stream) >= 0) {
      return other;
    }
  }
  return place;
}

std::string Simulator::TextAt(const Place& place) {
  const std::string stream = StreamName(static_cast<Stream>(place.stream));
  if (stages_[place.stage].heads[place.stream].done) {
    return absl::StrCat("stream ", stream, " of stage ", place.stage, ", which has finished");
  }
  return absl::StrCat(executor_.Text(SiteAt(place.stage, place.stream)), " on stream ", stream);
}

void Simulator::ReportDeadlock() {
  Place place{0, 0};
  for (int s = static_cast<int>(stages_.size()); s-- > 0;) {
    for (int stream = kStreamCount; stream-- > 0;) {
      if (!stages_[s].heads[stream].done) place = {s, stream};
    }
  }
  std::vector<Place> chain;
  const auto seen = [&](const Place& p) {
    return std::find_if(chain.begin(), chain.end(),
                        [&](const Place& q) { return q.stage == p.stage && q.stream == p.stream; });
  };
  while (seen(place) == chain.end()) {
    chain.push_back(place);
    if (stages_[place.stage].heads[place.stream].done) break;
    place = WaitsFor(place);
  }
  const auto begin = seen(place);
  const bool cycle = !stages_[place.stage].heads[place.stream].done;
  std::string text = cycle ? "these wait for each other: " : "waits for what never comes: ";
  for (auto at = cycle ? begin : chain.begin(); at != chain.end(); ++at) {
    absl::StrAppend(&text, TextAt(*at), " waits for ");
    if (!cycle && at + 2 == chain.end()) break;
  }
  absl::StrAppend(&text, TextAt(cycle ? place : chain.back()));
  report_.Add("deadlock", text);
}

}  // namespace planc::verifying
