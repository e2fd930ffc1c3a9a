#include "runtime/step/time_intervals.h"

#include <algorithm>
#include <cstddef>

namespace planc {

std::vector<TimeInterval> UnionOf(std::vector<TimeInterval> intervals) {
  std::erase_if(intervals, [](const TimeInterval& one) { return one.begin >= one.end; });
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; });
  std::vector<TimeInterval> merged;
  for (const TimeInterval& one : intervals) {
    if (!merged.empty() && one.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, one.end);
    } else {
      merged.push_back(one);
    }
  }
  return merged;
}

std::vector<TimeInterval> DifferenceOf(const std::vector<TimeInterval>& whole,
                                       const std::vector<TimeInterval>& removed) {
  std::vector<TimeInterval> left;
  size_t next = 0;
  for (const TimeInterval& one : whole) {
    int64_t begin = one.begin;
    while (next < removed.size() && removed[next].end <= begin) ++next;
    // An interval of `removed` may reach into the next one of `whole`, so `next` stays on it.
    for (size_t i = next; i < removed.size() && removed[i].begin < one.end; ++i) {
      if (removed[i].begin > begin) left.push_back({begin, removed[i].begin});
      begin = removed[i].end;
    }
    if (begin < one.end) left.push_back({begin, one.end});
  }
  return left;
}

int64_t LengthOf(const std::vector<TimeInterval>& intervals) {
  int64_t length = 0;
  for (const TimeInterval& one : intervals) length += one.end - one.begin;
  return length;
}

}  // namespace planc
