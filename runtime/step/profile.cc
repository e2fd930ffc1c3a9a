#include "runtime/step/profile.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace planc {

int64_t ProfileClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const Instruction& InstructionOf(const Plan& plan, const ProfileEntry& entry) {
  return plan.blocks[entry.block].instructions[entry.instruction];
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

}  // namespace planc
