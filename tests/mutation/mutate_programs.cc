// Mutations of calls and repeats: which blocks run, in which order, on which slots, for what.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

// A call of some program.
struct CallPlace {
  int stage = 0;
  int program = 0;
  Repeat* repeat = nullptr;
  int call = 0;
};

CallPlace ChooseCall(Plan& plan, Choice& choice) {
  std::vector<CallPlace> places;
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    for (int p = 0; p < kProgramCount; ++p) {
      for (Repeat& repeat : plan.classes[c].programs[p].steps) {
        for (size_t i = 0; i < repeat.calls.size(); ++i) {
          places.push_back({static_cast<int>(c), p, &repeat, static_cast<int>(i)});
        }
      }
    }
  }
  if (places.empty()) return {};
  return places[choice.Below(static_cast<int64_t>(places.size()))];
}

Mutated Done(const Plan& plan, const CallPlace& place, const std::string& what) {
  const Call& call = place.repeat->calls[place.call];
  const char* block = call.block >= 0 && call.block < static_cast<int64_t>(plan.blocks.size())
                          ? plan.blocks[call.block].name.c_str()
                          : "?";
  return {true,
          absl::StrCat("stage ", place.stage, ", ",
                       ProgramName(static_cast<ProgramKind>(place.program)), ", call of ", block,
                       " layer=", call.layer, " microbatch=", call.microbatch, ": ", what)};
}

Mutated DropCall(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  Mutated result = Done(plan, place, "dropped");
  place.repeat->calls.erase(place.repeat->calls.begin() + place.call);
  return result;
}

Mutated DuplicateCall(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  Mutated result = Done(plan, place, "duplicated");
  const Call copy = place.repeat->calls[place.call];
  place.repeat->calls.insert(place.repeat->calls.begin() + place.call, copy);
  return result;
}

Mutated SwapCalls(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  auto& calls = place.repeat->calls;
  const int other = static_cast<int>(choice.Below(static_cast<int64_t>(calls.size())));
  if (calls[other] == calls[place.call]) return {};
  Mutated result = Done(plan, place, absl::StrCat("swapped with call ", other));
  std::swap(calls[other], calls[place.call]);
  return result;
}

Mutated SwapNeighbours(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  auto& calls = place.repeat->calls;
  if (place.call + 1 >= static_cast<int>(calls.size())) return {};
  Mutated result = Done(plan, place, "swapped with the next");
  std::swap(calls[place.call], calls[place.call + 1]);
  return result;
}

Mutated ChangeBlock(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  Call& call = place.repeat->calls[place.call];
  const int block = static_cast<int>(choice.Below(static_cast<int64_t>(plan.blocks.size())));
  if (block == call.block) return {};
  Mutated result = Done(plan, place, absl::StrCat("becomes ", plan.blocks[block].name));
  call.block = block;
  return result;
}

Mutated ChangeSlot(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  Call& call = place.repeat->calls[place.call];
  if (call.slots.empty()) return {};
  const int64_t binding = choice.Below(static_cast<int64_t>(call.slots.size()));
  const int pool = plan.blocks[call.block].bindings[binding];
  const int32_t slots = plan.classes[place.stage].pool_slots[pool];
  const int32_t slot = static_cast<int32_t>(choice.Below(slots + 1));
  if (slot == call.slots[binding]) return {};
  call.slots[binding] = slot;
  return Done(plan, place, absl::StrCat("slot ", slot, " of pool ", plan.pools[pool].name));
}

Mutated ChangeLayer(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  const auto& layers = plan.classes[place.stage].layers;
  if (place.repeat == nullptr || layers.empty()) return {};
  Call& call = place.repeat->calls[place.call];
  const int layer = layers[choice.Below(static_cast<int64_t>(layers.size()))];
  if (layer == call.layer) return {};
  Mutated result = Done(plan, place, absl::StrCat("layer ", layer));
  call.layer = layer;
  return result;
}

Mutated ChangeMicrobatch(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  Call& call = place.repeat->calls[place.call];
  const int microbatch = static_cast<int>(choice.Below(plan.microbatches + 2)) - 1;
  if (microbatch == call.microbatch) return {};
  Mutated result = Done(plan, place, absl::StrCat("microbatch ", microbatch));
  call.microbatch = microbatch;
  return result;
}

Mutated ChangeCount(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  constexpr int64_t kCounts[] = {0, 1, 2, -1, int64_t{1} << 60};
  Repeat& repeat = *place.repeat;
  const int64_t before = repeat.count;
  repeat.count = choice.Below(2) == 0 ? repeat.count + 1 : kCounts[choice.Below(5)];
  if (repeat.count == before) return {};
  return Done(plan, place, absl::StrCat("repeated ", repeat.count, " times"));
}

Mutated ChangeMicrobatchStep(Plan& plan, Choice& choice) {
  const CallPlace place = ChooseCall(plan, choice);
  if (place.repeat == nullptr) return {};
  Mutated result = Done(plan, place, "another step of microbatches");
  place.repeat->microbatch_step += choice.Below(2) == 0 ? 1 : -1;
  return result;
}

}  // namespace

std::vector<MutationKind> ProgramMutations() {
  return {
      {"drop call", DropCall},       {"duplicate call", DuplicateCall},
      {"swap calls", SwapCalls},     {"swap neighbouring calls", SwapNeighbours},
      {"change block", ChangeBlock}, {"change slot", ChangeSlot},
      {"change layer", ChangeLayer}, {"change microbatch", ChangeMicrobatch},
      {"change count", ChangeCount}, {"change microbatch step", ChangeMicrobatchStep},
  };
}

}  // namespace planc
