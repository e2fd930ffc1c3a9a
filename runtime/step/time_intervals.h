#ifndef PLANC_RUNTIME_STEP_TIME_INTERVALS_H_
#define PLANC_RUNTIME_STEP_TIME_INTERVALS_H_

#include <cstdint>
#include <vector>

namespace planc {

// From `begin` to before `end`, in nanoseconds of one clock.
struct TimeInterval {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const TimeInterval&, const TimeInterval&) = default;
};

// The same points of time as intervals that neither overlap nor touch, in order; empty ones are
// left out.
std::vector<TimeInterval> UnionOf(std::vector<TimeInterval> intervals);

// The points of `whole` that are not in `removed`. Both are results of UnionOf; so is what is
// returned.
std::vector<TimeInterval> DifferenceOf(const std::vector<TimeInterval>& whole,
                                       const std::vector<TimeInterval>& removed);

// Nanoseconds of intervals that do not overlap.
int64_t LengthOf(const std::vector<TimeInterval>& intervals);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_TIME_INTERVALS_H_
