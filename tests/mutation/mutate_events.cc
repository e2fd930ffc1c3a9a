// Mutations of one program alone: the waits and records in it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

using Refs = std::vector<EventRef> Instruction::*;

// A binding of the block to the pool of the event; -1 when it has none.
int BindingOf(const Plan& plan, const Block& block, int event) {
  const auto found =
      std::find(block.bindings.begin(), block.bindings.end(), plan.events[event].pool);
  return found == block.bindings.end() ? -1 : static_cast<int>(found - block.bindings.begin());
}

bool AddRef(const Plan& plan, const Block& block, std::vector<EventRef>* refs, Choice& choice) {
  std::vector<EventRef> all;
  for (size_t e = 0; e < plan.events.size(); ++e) {
    const int binding = BindingOf(plan, block, static_cast<int>(e));
    if (binding >= 0) all.push_back({static_cast<int>(e), binding});
  }
  if (all.empty()) return false;
  refs->push_back(all[choice.Below(static_cast<int64_t>(all.size()))]);
  return true;
}

// Drops a wait or record, names another event or slot in it, adds one, or moves all to another
// instruction.
Mutated EditRefs(Plan& plan, ProgramKind program, Refs refs, Choice& choice) {
  bool add = choice.Below(4) == 0;
  Block* block = nullptr;
  int at = 0;
  Instruction* instruction =
      ChooseInProgram(plan, program, choice, &block, &at,
                      [&](const Instruction& i) { return add || !(i.*refs).empty(); });
  if (instruction == nullptr) {
    add = true;
    instruction = ChooseInProgram(plan, program, choice, &block, &at,
                                  [](const Instruction&) { return true; });
  }
  if (instruction == nullptr) return {};
  std::vector<EventRef>& list = instruction->*refs;
  const std::string text = absl::StrCat(
      "program ", ProgramName(program), ", block ", block->name, ", instruction ", at, " (",
      TraitsOf(instruction->opcode).text, "): ", refs == &Instruction::waits ? "waits" : "records");
  if (add) return {AddRef(plan, *block, &list, choice), text + " added"};
  const int64_t chosen = choice.Below(static_cast<int64_t>(list.size()));
  EventRef& ref = list[chosen];
  const EventRef before = ref;
  switch (choice.Below(4)) {
    case 0:
      list.erase(list.begin() + chosen);
      return {true, text + " dropped"};
    case 1:
      ref.event = static_cast<int>(choice.Below(static_cast<int64_t>(plan.events.size())));
      ref.binding = std::max(0, BindingOf(plan, *block, ref.event));
      return {ref.event != before.event, text + " of another event"};
    case 2:
      ref.binding = static_cast<int>(choice.Below(static_cast<int64_t>(block->bindings.size())));
      return {ref.binding != before.binding, text + " of another slot"};
    default: {
      auto& all = block->instructions;
      Instruction& other = all[choice.Below(static_cast<int64_t>(all.size()))];
      if (&other == instruction) return {};
      const std::vector<EventRef> moved = std::move(list);
      list.clear();
      (other.*refs).insert((other.*refs).end(), moved.begin(), moved.end());
      return {true, text + " moved"};
    }
  }
}

template <ProgramKind program>
Mutated EditWaits(Plan& plan, Choice& choice) {
  return EditRefs(plan, program, &Instruction::waits, choice);
}

template <ProgramKind program>
Mutated EditRecords(Plan& plan, Choice& choice) {
  return EditRefs(plan, program, &Instruction::records, choice);
}

}  // namespace

Instruction* ChooseInProgram(Plan& plan, ProgramKind program, Choice& choice, Block** block,
                             int* at, const std::function<bool(const Instruction&)>& property) {
  struct Place {
    Call* call = nullptr;
    int instruction = 0;
  };
  std::vector<Call*> calls;
  std::vector<Place> places;
  for (RankClass& rank_class : plan.classes) {
    for (Repeat& repeat : rank_class.programs[static_cast<int>(program)].steps) {
      for (Call& call : repeat.calls) {
        calls.push_back(&call);
        const auto& list = plan.blocks[call.block].instructions;
        for (size_t i = 0; i < list.size(); ++i) {
          if (property(list[i])) places.push_back({&call, static_cast<int>(i)});
        }
      }
    }
  }
  if (places.empty()) return nullptr;
  const Place place = places[choice.Below(static_cast<int64_t>(places.size()))];
  const int from = place.call->block;
  plan.blocks.push_back(plan.blocks[from]);
  *block = &plan.blocks.back();
  absl::StrAppend(&(*block)->name, ".", ProgramName(program));
  for (Call* call : calls) {
    if (call->block == from) call->block = static_cast<int>(plan.blocks.size()) - 1;
  }
  *at = place.instruction;
  return &(*block)->instructions[*at];
}

std::vector<MutationKind> EventMutations() {
  return {
      {"waits of init", EditWaits<ProgramKind::kInit>},
      {"waits of publish", EditWaits<ProgramKind::kPublish>},
      {"waits of step", EditWaits<ProgramKind::kStep>},
      {"waits of eval", EditWaits<ProgramKind::kEval>},
      {"records of init", EditRecords<ProgramKind::kInit>},
      {"records of publish", EditRecords<ProgramKind::kPublish>},
      {"records of step", EditRecords<ProgramKind::kStep>},
      {"records of eval", EditRecords<ProgramKind::kEval>},
  };
}

}  // namespace planc
