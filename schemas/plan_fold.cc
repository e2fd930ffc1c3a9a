// FoldCalls: finds the periodic parts of a call list.
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/plan.h"

namespace planc {
namespace {

// A fold must spare at least this many calls; shorter ones only make the text harder to read.
constexpr size_t kMinimumSaving = 4;
// How many later occurrences of a call are tried as the next start of its period.
constexpr int kMaximumCandidates = 64;

struct Fold {
  size_t period = 0;
  size_t count = 1;
  int step = 0;
  size_t Saving() const { return (count - 1) * period; }
};

class Folder {
 public:
  explicit Folder(const std::vector<Call>& calls)
      : calls_(calls), keys_(calls.size()), next_(calls.size(), calls.size()) {
    std::map<std::tuple<int, int, std::vector<int32_t>>, std::pair<int, size_t>> seen;
    for (size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      const auto [entry, inserted] =
          seen.try_emplace({call.block, call.layer, call.slots}, static_cast<int>(seen.size()), i);
      keys_[i] = entry->second.first;
      if (!inserted) next_[entry->second.second] = i;
      entry->second.second = i;
    }
  }

  // The fold at `begin` that spares most calls; period 0 when none spares enough.
  Fold BestAt(size_t begin) const {
    Fold best;
    size_t start = next_[begin];
    for (int tried = 0; tried < kMaximumCandidates && start < calls_.size(); ++tried) {
      const Fold fold = Extend(begin, start - begin);
      if (fold.Saving() >= kMinimumSaving && fold.Saving() > best.Saving()) best = fold;
      start = next_[start];
    }
    return best;
  }

 private:
  // The longest run from `begin` in which each call equals the one `period` earlier, but for a
  // microbatch index that advances by one constant.
  Fold Extend(size_t begin, size_t period) const {
    bool step_known = false;
    int64_t step = 0;
    size_t end = begin + period;
    for (; end < calls_.size() && keys_[end] == keys_[end - period]; ++end) {
      const int now = calls_[end].microbatch;
      const int before = calls_[end - period].microbatch;
      if (now < 0 || before < 0) {
        if (now != before) break;
        continue;
      }
      const int64_t advance = int64_t{now} - before;
      if (step_known && advance != step) break;
      step = advance;
      step_known = true;
    }
    return {period, (end - begin) / period, static_cast<int>(step)};
  }

  const std::vector<Call>& calls_;
  std::vector<int> keys_;     // equal for calls that differ in the microbatch only
  std::vector<size_t> next_;  // next call with the same key, or calls_.size()
};

}  // namespace

Program FoldCalls(const std::vector<Call>& calls) {
  const Folder folder(calls);
  Program program;
  bool open = false;  // the last repeat is a run of single calls
  for (size_t i = 0; i < calls.size();) {
    const Fold fold = folder.BestAt(i);
    if (fold.period == 0) {
      if (!open) program.steps.emplace_back();
      program.steps.back().calls.push_back(calls[i]);
      open = true;
      ++i;
      continue;
    }
    Repeat& repeat = program.steps.emplace_back();
    repeat.count = static_cast<int64_t>(fold.count);
    repeat.microbatch_step = fold.step;
    repeat.calls.assign(calls.begin() + i, calls.begin() + i + fold.period);
    i += fold.count * fold.period;
    open = false;
  }
  return program;
}

}  // namespace planc
