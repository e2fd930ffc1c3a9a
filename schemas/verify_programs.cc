// Calls of every program: bounded in number, and each names a block, slots, a layer and a
// microbatch that exist.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_report.h"

namespace planc::verifying {
namespace {

// One class with its layers in order.
struct Holder {
  const RankClass& rank_class;
  std::vector<int> layers;
};

bool CallIsValid(const Plan& plan, const Holder& holder, const Call& call, const std::string& where,
                 Report& report) {
  if (call.block < 0 || call.block >= static_cast<int64_t>(plan.blocks.size())) {
    report.Add("structure", absl::StrCat(where, " calls no block"));
    return false;
  }
  const Block& block = plan.blocks[call.block];
  if (call.slots.size() != block.bindings.size()) {
    report.Add("structure",
               absl::StrCat(where, " gives ", Counted(call.slots.size(), "slot"), " to block ",
                            block.name, " with ", block.bindings.size(), " bindings"));
    return false;
  }
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const int32_t slots = holder.rank_class.pool_slots[block.bindings[i]];
    if (call.slots[i] < 0 || call.slots[i] >= slots) {
      report.Add("bounds",
                 absl::StrCat(where, " (", block.name, ") uses slot ", call.slots[i], " of pool ",
                              plan.pools[block.bindings[i]].name, ", which has ", slots));
      return false;
    }
  }
  if (call.layer != -1 &&
      !std::binary_search(holder.layers.begin(), holder.layers.end(), call.layer)) {
    report.Add("structure", absl::StrCat(where, " (", block.name, ") is about layer ", call.layer,
                                         ", which the stage does not hold"));
    return false;
  }
  return true;
}

// Steps of work that one call of the block is: itself, instructions, waits and records.
int64_t BlockSize(const Block& block) {
  size_t size = 1 + block.instructions.size();
  for (const Instruction& i : block.instructions) size += i.waits.size() + i.records.size();
  return static_cast<int64_t>(size);
}

// The size of one repeat, and whether its microbatches stay in range.
int64_t RepeatSize(const Plan& plan, const Holder& holder, const Repeat& repeat,
                   const std::string& where, Report& report) {
  if (repeat.count < 0 || repeat.count > kMaxInstructions) {
    report.Add("structure", absl::StrCat(where, " repeats ", Counted(repeat.count, "time")));
    return kMaxNumber;
  }
  int64_t size = 0;
  for (const Call& call : repeat.calls) {
    if (!CallIsValid(plan, holder, call, where, report)) return kMaxNumber;
    size += BlockSize(plan.blocks[call.block]);
    if (call.microbatch == -1 || repeat.count == 0) continue;
    const int64_t last =
        call.microbatch + (repeat.count - 1) * static_cast<int64_t>(repeat.microbatch_step);
    if (call.microbatch < 0 || call.microbatch >= plan.microbatches || last < 0 ||
        last >= plan.microbatches) {
      report.Add("structure", absl::StrCat(where, " runs microbatches ", call.microbatch, " to ",
                                           last, " of ", plan.microbatches));
      return kMaxNumber;
    }
  }
  return Times(size, repeat.count);
}

}  // namespace

void CheckPrograms(const Plan& plan, Report& report) {
  int64_t total = 0;
  int64_t cells = 0;
  size_t layers = 0;
  for (const RankClass& rank_class : plan.classes) {
    Holder holder{rank_class, rank_class.layers};
    std::sort(holder.layers.begin(), holder.layers.end());
    layers += holder.layers.size();
    for (int p = 0; p < kProgramCount && !report.full(); ++p) {
      const std::string where =
          absl::StrCat("stage ", rank_class.stage, ", ", ProgramName(static_cast<ProgramKind>(p)));
      for (const Repeat& repeat : rank_class.programs[p].steps) {
        total = Plus(total, RepeatSize(plan, holder, repeat, where, report));
      }
    }
    for (int32_t slots : rank_class.pool_slots) cells = Plus(cells, slots);
    for (const Event& event : plan.events) {
      cells = Plus(cells, rank_class.pool_slots[event.pool]);
    }
  }
  // Tables that the verifier makes of these.
  const auto count = [](size_t n) { return static_cast<int64_t>(n); };
  const int64_t tables = Times(count(layers) + 1, count(plan.classes.size() + plan.units.size())) +
                         Times(count(plan.units.size()), count(plan.params.size()));
  if (total > kMaxInstructions || cells > kMaxCells || tables > kMaxCells) {
    report.Add("size", absl::StrCat("the plan executes more than ",
                                    Counted(kMaxInstructions, "instruction"), " or has more than ",
                                    Counted(kMaxCells, "slot"), "; it cannot be verified"));
  }
}

}  // namespace planc::verifying
