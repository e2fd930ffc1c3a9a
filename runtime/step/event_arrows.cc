#include "runtime/step/event_arrows.h"

#include <map>
#include <utility>

namespace planc {
namespace {

// Walks the program as its streams do, each with its next entry.
class ArrowFinder {
 public:
  ArrowFinder(const Plan& plan, const StepEntries& entries) : plan_(plan), entries_(entries) {}

  void Visit(const Call& call) {
    for (const Instruction& instruction : plan_.blocks[call.block].instructions) {
      const int stream = static_cast<int>(instruction.stream);
      const EntryIndex self = {stream, next_[stream]++};
      complete_ &= Holds(self);
      if (!complete_) return;
      FindProducer(call, instruction, self);
      for (const EventRef& record : instruction.records) {
        recorded_[{record.event, call.slots[record.binding]}] = self;
      }
    }
  }

  std::vector<EventArrow> Take() {
    for (int stream = 0; stream < kStreamCount; ++stream) {
      complete_ &= next_[stream] == static_cast<int64_t>(entries_[stream].size());
    }
    return complete_ ? std::move(arrows_) : std::vector<EventArrow>();
  }

 private:
  bool Holds(const EntryIndex& index) const {
    return index.entry < static_cast<int64_t>(entries_[index.stream].size());
  }
  const ProfileEntry& At(const EntryIndex& index) const {
    return entries_[index.stream][index.entry];
  }

  void FindProducer(const Call& call, const Instruction& instruction, const EntryIndex& self) {
    const EntryIndex* last = nullptr;
    for (const EventRef& wait : instruction.waits) {
      const auto found = recorded_.find({wait.event, call.slots[wait.binding]});
      if (found == recorded_.end() || found->second.stream == self.stream) continue;
      if (At(found->second).ended <= At(self).asked) continue;
      if (last == nullptr || At(found->second).ended > At(*last).ended) last = &found->second;
    }
    if (last != nullptr) arrows_.push_back({*last, self});
  }

  const Plan& plan_;
  const StepEntries& entries_;
  std::array<int64_t, kStreamCount> next_{};
  std::map<std::pair<int, int32_t>, EntryIndex> recorded_;  // by event and slot
  bool complete_ = true;
  std::vector<EventArrow> arrows_;
};

}  // namespace

std::vector<EventArrow> EventArrows(const Plan& plan, const RankClass& rank_class,
                                    const StepEntries& entries) {
  ArrowFinder finder(plan, entries);
  ForEachCall(rank_class.programs[static_cast<int>(ProgramKind::kStep)],
              [&finder](const Call& call) { finder.Visit(call); });
  return finder.Take();
}

}  // namespace planc
