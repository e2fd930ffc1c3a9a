// Mutations that are chosen deliberately: parameters that are used twice or for one another, rotary
// embedding, types with sizes to match, groups and labels.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

bool Updates(const Instruction& i) {
  return i.label == Label::kForward && i.operands.size() >= 2 &&
         TraitsOf(i.opcode).operands[0].access == Access::kUpdate;
}
bool IsRotary(const Instruction& i) { return absl::StartsWith(TraitsOf(i.opcode).text, "rope_"); }
bool Any(const Instruction&) { return true; }

// x += f(w) once more: a bias, positions, a rotation.
Mutated DoubleUpdate(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Updates);
  if (spot.block < 0) return {};
  auto& list = plan.blocks[spot.block].instructions;
  const Instruction again = list[spot.instruction];
  list.insert(list.begin() + spot.instruction, again);
  return {true, SpotText(plan, spot) + ": done twice"};
}

bool HoldsParameters(const Pool& pool) {
  return pool.kind == MemoryKind::kWeights || pool.kind == MemoryKind::kOptimizer;
}

// Two calls of a block in one program: the second takes the first one's layer and parameters.
Mutated UseLayerTwice(Plan& plan, Choice& choice) {
  std::vector<std::pair<const Call*, Call*>> pairs;
  for (RankClass& rank_class : plan.classes) {
    for (ProgramKind kind : {ProgramKind::kStep, ProgramKind::kEval}) {
      std::vector<Call*> calls;
      for (Repeat& repeat : rank_class.programs[static_cast<int>(kind)].steps) {
        for (Call& call : repeat.calls) calls.push_back(&call);
      }
      for (const Call* first : calls) {
        for (Call* second : calls) {
          if (first->block != second->block || first->layer == second->layer) continue;
          pairs.push_back({first, second});
        }
      }
    }
  }
  if (pairs.empty()) return {};
  const auto [first, second] = pairs[choice.Below(static_cast<int64_t>(pairs.size()))];
  const Block& block = plan.blocks[first->block];
  bool same = true;
  for (size_t b = 0; b < block.bindings.size(); ++b) {
    if (!HoldsParameters(plan.pools[block.bindings[b]])) continue;
    same = same && second->slots[b] == first->slots[b];
    second->slots[b] = first->slots[b];
  }
  Mutated result = {!same, absl::StrCat("block ", block.name, ": layer ", second->layer,
                                        " takes the parameters of layer ", first->layer)};
  if (choice.Below(2) == 0) second->layer = first->layer;
  return result;
}

// Two instructions of a block take each other's operand, where it is of the same size and pool.
Mutated ExchangeOperands(Plan& plan, Choice& choice) {
  const Spot spot =
      ChooseSpot(plan, choice, [](const Instruction& i) { return i.operands.size() > 1; });
  if (spot.block < 0) return {};
  auto& list = plan.blocks[spot.block].instructions;
  auto& operands = list[spot.instruction].operands;
  Operand& mine = operands[choice.Below(static_cast<int64_t>(operands.size()))];
  std::vector<Operand*> others;
  for (Instruction& instruction : list) {
    for (Operand& other : instruction.operands) {
      const bool same_place = other.buffer == mine.buffer && other.offset == mine.offset;
      if (other.bytes == mine.bytes && other.binding == mine.binding && !same_place) {
        others.push_back(&other);
      }
    }
  }
  if (others.empty()) return {};
  std::swap(mine, *others[choice.Below(static_cast<int64_t>(others.size()))]);
  return {true, SpotText(plan, spot) + ": operand exchanged with another instruction"};
}

Mutated ChangeRotary(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, IsRotary);
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  const int64_t integers = static_cast<int64_t>(instruction.integers.size());
  const int64_t reals = static_cast<int64_t>(instruction.reals.size());
  const int64_t k = choice.Below(integers + reals + 1);
  if (k < integers) {
    int64_t& integer = instruction.integers[k];
    integer = choice.Below(2) == 0 ? integer * 2 : integer / 2;
  } else if (k < integers + reals) {
    instruction.reals[k - integers] *= 10;
  } else if (instruction.opcode != Opcode::kRopeTable) {
    instruction.opcode =
        instruction.opcode == Opcode::kRopeForward ? Opcode::kRopeBackward : Opcode::kRopeForward;
  } else {
    instruction.operands[0].offset += 64;
  }
  return {true, absl::StrCat(SpotText(plan, spot), ": rotary parameter ", k)};
}

// Another type of the same number of elements, everywhere.
void Retype(Plan& plan, int buffer, DType dtype) {
  Buffer& changed = plan.buffers[buffer];
  const int64_t from = SizeOf(changed.dtype), to = SizeOf(dtype);
  const auto scale = [&](int64_t& bytes) { bytes = bytes / from * to; };
  changed.dtype = dtype;
  scale(changed.bytes);
  for (Block& block : plan.blocks) {
    for (Instruction& instruction : block.instructions) {
      for (Operand& operand : instruction.operands) {
        if (operand.buffer != buffer) continue;
        scale(operand.bytes);
        scale(operand.offset);
        scale(operand.shard_stride);
      }
    }
  }
}

Mutated RetypeBuffer(Plan& plan, Choice& choice) {
  const int buffer = static_cast<int>(choice.Below(static_cast<int64_t>(plan.buffers.size())));
  const DType dtype = static_cast<DType>(choice.Below(5));
  if (dtype == plan.buffers[buffer].dtype) return {};
  Retype(plan, buffer, dtype);
  return {true, absl::StrCat("buffer ", plan.buffers[buffer].name, " of ", DTypeName(dtype),
                             ", sizes changed with it")};
}

// Of the buffers with a single element.
Mutated RetypeScalar(Plan& plan, Choice& choice) {
  std::vector<int> scalars;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].bytes == SizeOf(plan.buffers[b].dtype)) {
      scalars.push_back(static_cast<int>(b));
    }
  }
  if (scalars.empty()) return {};
  const int buffer = scalars[choice.Below(static_cast<int64_t>(scalars.size()))];
  const DType dtype = static_cast<DType>(choice.Below(5));
  if (dtype == plan.buffers[buffer].dtype) return {};
  Retype(plan, buffer, dtype);
  return {true, absl::StrCat("scalar ", plan.buffers[buffer].name, " of ", DTypeName(dtype))};
}

Mutated ExchangeGroups(Plan& plan, Choice& choice) {
  if (plan.groups.size() < 2) return {};
  const int64_t count = static_cast<int64_t>(plan.groups.size());
  GroupKind& a = plan.groups[choice.Below(count)];
  GroupKind& b = plan.groups[choice.Below(count)];
  if (a.axes == b.axes && a.pipeline_ends == b.pipeline_ends) return {};
  if (choice.Below(2) == 0) {
    std::swap(a.axes, b.axes);
    std::swap(a.pipeline_ends, b.pipeline_ends);
    return {true, absl::StrCat("groups ", a.name, " and ", b.name, " exchanged")};
  }
  a.axes = b.axes;
  a.pipeline_ends = b.pipeline_ends;
  return {true, absl::StrCat("group ", a.name, " becomes ", b.name)};
}

// A collective leaves out an axis or takes in one more, by a group of its own.
Mutated OtherMembers(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, [](const Instruction& i) { return i.group >= 0; });
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  GroupKind group = plan.groups[instruction.group];
  group.name += ".other";
  group.axes = static_cast<AxisSet>(group.axes ^ (1u << choice.Below(kAxisCount)));
  instruction.group = static_cast<int>(plan.groups.size());
  plan.groups.push_back(group);
  return {true, SpotText(plan, spot) + ": with other members"};
}

Mutated ChangeLabel(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  const Label label = static_cast<Label>(choice.Below(static_cast<int>(Label::kPipeline) + 2));
  if (label == instruction.label) return {};
  instruction.label = label;
  return {true, SpotText(plan, spot) + ": another label"};
}

}  // namespace

std::vector<MutationKind> UseMutations() {
  return {
      {"double update", DoubleUpdate},         {"use layer twice", UseLayerTwice},
      {"exchange operands", ExchangeOperands}, {"change rotary", ChangeRotary},
      {"retype buffer", RetypeBuffer},         {"retype scalar", RetypeScalar},
      {"exchange groups", ExchangeGroups},     {"other members", OtherMembers},
      {"change label", ChangeLabel},
  };
}

}  // namespace planc
