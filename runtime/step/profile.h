#ifndef PLANC_RUNTIME_STEP_PROFILE_H_
#define PLANC_RUNTIME_STEP_PROFILE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// Nanoseconds of a steady clock.
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

// A profile of every stream of one rank.
struct RankProfile {
  explicit RankProfile(int64_t capacity_per_stream);
  std::array<std::unique_ptr<StreamProfile>, kStreamCount> streams;
};

// The profile in Chrome's trace event format (JSON; open in chrome://tracing or Perfetto): one row
// per stream, one slice per instruction, process id = rank.
std::string ChromeTrace(const Plan& plan, int64_t rank, const RankProfile& profile);

// A table by opcode: calls, seconds, share of the time of its stream, FLOP/s; then, per stream, the
// seconds it waited for events and the seconds between instructions (dispatch).
std::string ProfileTable(const Plan& plan, const RankProfile& profile);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PROFILE_H_
