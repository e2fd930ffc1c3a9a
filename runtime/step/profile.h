#ifndef PLANC_RUNTIME_STEP_PROFILE_H_
#define PLANC_RUNTIME_STEP_PROFILE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// Nanoseconds of a steady clock that all processes of one machine share.
int64_t ProfileClock();

// One instruction as it was carried out. Times in nanoseconds of ProfileClock.
struct ProfileEntry {
  int32_t block = 0;
  int32_t instruction = 0;
  int32_t layer = -1;
  int32_t microbatch = -1;
  int64_t asked = 0;    // the stream reached it and began to wait for its events
  int64_t started = 0;  // its events had come
  int64_t ended = 0;
};

const Instruction& InstructionOf(const Plan& plan, const ProfileEntry& entry);

// The last `capacity` instructions of one stream; memory is taken once.
class StreamProfile {
 public:
  explicit StreamProfile(int64_t capacity) : entries_(static_cast<size_t>(capacity)) {}

  void Add(const ProfileEntry& entry) {
    entries_[static_cast<size_t>(added_ % static_cast<int64_t>(entries_.size()))] = entry;
    ++added_;
  }
  void Clear() { added_ = 0; }

  // In the order in which they were added.
  std::vector<ProfileEntry> Entries() const;
  // Entries that were overwritten by later ones.
  int64_t dropped() const;

 private:
  std::vector<ProfileEntry> entries_;
  int64_t added_ = 0;
};

// A profile of every stream of one rank: what profile_table.h and profile_trace.h show.
struct RankProfile {
  explicit RankProfile(int64_t capacity_per_stream);
  std::array<std::unique_ptr<StreamProfile>, kStreamCount> streams;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PROFILE_H_
