#ifndef PLANC_RUNTIME_STEP_EVENT_ARROWS_H_
#define PLANC_RUNTIME_STEP_EVENT_ARROWS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/step/profile.h"
#include "schemas/plan.h"

namespace planc {

// The entries of one step, by stream, in order.
using StepEntries = std::array<std::vector<ProfileEntry>, kStreamCount>;

// An entry of StepEntries.
struct EntryIndex {
  int stream = 0;
  int64_t entry = 0;
  friend bool operator==(const EntryIndex&, const EntryIndex&) = default;
};

// `waiter` could not start before `producer` was done.
struct EventArrow {
  EntryIndex producer;
  EntryIndex waiter;
  friend bool operator==(const EventArrow&, const EventArrow&) = default;
};

// For each instruction of the step that had to wait for another stream: the instruction that it
// waited for last. In program order of the waiters; empty when `entries` are not those of one whole
// step program of `rank_class`.
std::vector<EventArrow> EventArrows(const Plan& plan, const RankClass& rank_class,
                                    const StepEntries& entries);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_EVENT_ARROWS_H_
