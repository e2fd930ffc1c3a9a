// Mutations of whole instructions: their order, streams, events, groups and attributes.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

bool Any(const Instruction&) { return true; }
bool HasWaits(const Instruction& i) { return !i.waits.empty(); }
bool HasRecords(const Instruction& i) { return !i.records.empty(); }
bool HasGroup(const Instruction& i) { return i.group >= 0; }
bool HasIntegers(const Instruction& i) { return !i.integers.empty(); }
bool HasReals(const Instruction& i) { return !i.reals.empty(); }
bool IsTransfer(const Instruction& i) {
  return i.opcode == Opcode::kSend || i.opcode == Opcode::kRecv;
}

std::set<int> CalledBlocks(const Plan& plan) {
  std::set<int> called;
  for (const RankClass& rank_class : plan.classes) {
    for (const Program& program : rank_class.programs) {
      for (const Repeat& repeat : program.steps) {
        for (const Call& call : repeat.calls) called.insert(call.block);
      }
    }
  }
  return called;
}

Mutated Done(const Plan& plan, const Spot& spot, const std::string& what) {
  return {true, absl::StrCat(SpotText(plan, spot), ": ", what)};
}

Mutated DropInstruction(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  Mutated result = Done(plan, spot, "dropped");
  auto& list = plan.blocks[spot.block].instructions;
  list.erase(list.begin() + spot.instruction);
  return result;
}

Mutated DuplicateInstruction(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  auto& list = plan.blocks[spot.block].instructions;
  const Instruction copy = list[spot.instruction];
  list.insert(list.begin() + spot.instruction, copy);
  return Done(plan, spot, "duplicated");
}

Mutated SwapInstructions(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  auto& list = plan.blocks[spot.block].instructions;
  if (spot.instruction + 1 >= static_cast<int>(list.size())) return {};
  Mutated result = Done(plan, spot, "swapped with the next");
  std::swap(list[spot.instruction], list[spot.instruction + 1]);
  return result;
}

Mutated MoveInstruction(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  auto& list = plan.blocks[spot.block].instructions;
  const int to = static_cast<int>(choice.Below(static_cast<int64_t>(list.size())));
  if (to == spot.instruction) return {};
  Mutated result = Done(plan, spot, absl::StrCat("moved to ", to));
  const Instruction moved = list[spot.instruction];
  list.erase(list.begin() + spot.instruction);
  list.insert(list.begin() + to, moved);
  return result;
}

Mutated DropWait(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasWaits);
  if (spot.block < 0) return {};
  auto& waits = plan.blocks[spot.block].instructions[spot.instruction].waits;
  waits.erase(waits.begin() + choice.Below(static_cast<int64_t>(waits.size())));
  return Done(plan, spot, "a wait dropped");
}

Mutated DropRecord(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasRecords);
  if (spot.block < 0) return {};
  auto& records = plan.blocks[spot.block].instructions[spot.instruction].records;
  records.erase(records.begin() + choice.Below(static_cast<int64_t>(records.size())));
  return Done(plan, spot, "a record dropped");
}

Mutated DropAllWaits(Plan& plan, Choice&) {
  bool any = false;
  for (Block& block : plan.blocks) {
    for (Instruction& instruction : block.instructions) {
      any = any || !instruction.waits.empty();
      instruction.waits.clear();
    }
  }
  return {any, "all waits dropped"};
}

Mutated ChangeWait(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasWaits);
  if (spot.block < 0 || plan.events.size() < 2) return {};
  auto& waits = plan.blocks[spot.block].instructions[spot.instruction].waits;
  EventRef& ref = waits[choice.Below(static_cast<int64_t>(waits.size()))];
  const int event = static_cast<int>(choice.Below(static_cast<int64_t>(plan.events.size())));
  if (event == ref.event) return {};
  ref.event = event;
  return Done(plan, spot, absl::StrCat("waits for event ", event));
}

Mutated ChangeStream(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  const Stream stream = static_cast<Stream>(choice.Below(kStreamCount));
  if (stream == instruction.stream) return {};
  instruction.stream = stream;
  return Done(plan, spot, absl::StrCat("on stream ", StreamName(stream)));
}

Mutated ChangeGroup(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasGroup);
  if (spot.block < 0 || plan.groups.size() < 2) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  const int group = static_cast<int>(choice.Below(static_cast<int64_t>(plan.groups.size())));
  if (group == instruction.group) return {};
  Mutated result = Done(plan, spot, absl::StrCat("over group ", plan.groups[group].name));
  instruction.group = group;
  return result;
}

Mutated ChangeOpcode(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, Any);
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  const Opcode opcode = static_cast<Opcode>(choice.Below(kOpcodeCount));
  if (opcode == instruction.opcode) return {};
  instruction.opcode = opcode;
  return Done(plan, spot, absl::StrCat("becomes ", TraitsOf(opcode).text));
}

Mutated ChangeInteger(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasIntegers);
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  const int64_t k = choice.Below(static_cast<int64_t>(instruction.integers.size()));
  constexpr int64_t kDeltas[] = {1, -1, 2, -2, 64, -64, int64_t{1} << 40, -(int64_t{1} << 62)};
  const int64_t delta = kDeltas[choice.Below(8)];
  const std::string& name = TraitsOf(instruction.opcode).integers[k];
  Mutated result = Done(plan, spot, absl::StrCat(name, " += ", delta));
  instruction.integers[k] += delta;
  return result;
}

Mutated SwapIntegers(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasIntegers);
  if (spot.block < 0) return {};
  auto& integers = plan.blocks[spot.block].instructions[spot.instruction].integers;
  const int64_t a = choice.Below(static_cast<int64_t>(integers.size()));
  const int64_t b = choice.Below(static_cast<int64_t>(integers.size()));
  if (integers[a] == integers[b]) return {};
  std::swap(integers[a], integers[b]);
  return Done(plan, spot, absl::StrCat("attributes ", a, " and ", b, " swapped"));
}

Mutated ChangeReal(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, HasReals);
  if (spot.block < 0) return {};
  auto& reals = plan.blocks[spot.block].instructions[spot.instruction].reals;
  double& real = reals[choice.Below(static_cast<int64_t>(reals.size()))];
  real = choice.Below(2) == 0 ? real * 2 + 1 : real * 1.001 + 1e-3;
  return Done(plan, spot, absl::StrCat("attribute becomes ", real));
}

Mutated TurnTransfer(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, IsTransfer);
  if (spot.block < 0) return {};
  Instruction& instruction = plan.blocks[spot.block].instructions[spot.instruction];
  switch (choice.Below(3)) {
    case 0:
      instruction.opcode = instruction.opcode == Opcode::kSend ? Opcode::kRecv : Opcode::kSend;
      return Done(plan, spot, "send and receive exchanged");
    case 1:
      instruction.integers[1] = -instruction.integers[1];
      return Done(plan, spot, "to the other neighbour");
    default:
      instruction.integers[1] *= 2;
      return Done(plan, spot, "to the neighbour after the next");
  }
}

}  // namespace

Spot ChooseSpot(const Plan& plan, Choice& choice, bool (*property)(const Instruction&)) {
  std::vector<Spot> spots;
  for (int b : CalledBlocks(plan)) {
    const auto& list = plan.blocks[b].instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      if (property(list[i])) spots.push_back({b, static_cast<int>(i)});
    }
  }
  if (spots.empty()) return {-1, 0};
  return spots[choice.Below(static_cast<int64_t>(spots.size()))];
}

std::string SpotText(const Plan& plan, const Spot& spot) {
  const Block& block = plan.blocks[spot.block];
  return absl::StrCat("block ", block.name, ", instruction ", spot.instruction, " (",
                      TraitsOf(block.instructions[spot.instruction].opcode).text, ")");
}

std::vector<MutationKind> InstructionMutations() {
  return {
      {"drop instruction", DropInstruction},
      {"duplicate instruction", DuplicateInstruction},
      {"swap instructions", SwapInstructions},
      {"move instruction", MoveInstruction},
      {"drop wait", DropWait},
      {"drop record", DropRecord},
      {"drop all waits", DropAllWaits},
      {"change wait", ChangeWait},
      {"change stream", ChangeStream},
      {"change group", ChangeGroup},
      {"change opcode", ChangeOpcode},
      {"change integer", ChangeInteger},
      {"swap integers", SwapIntegers},
      {"change real", ChangeReal},
      {"turn transfer", TurnTransfer},
  };
}

}  // namespace planc
