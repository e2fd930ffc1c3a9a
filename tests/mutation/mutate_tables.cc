// Mutations of the tables of a plan: mesh, pools, arenas, events, stages, units and parameters.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

template <typename T>
T& ChooseFrom(std::vector<T>& list, Choice& choice) {
  return list[choice.Below(static_cast<int64_t>(list.size()))];
}

Mutated ChangeMesh(Plan& plan, Choice& choice) {
  const int64_t axis = choice.Below(kAxisCount);
  const int64_t sizes[] = {0, 1, 2, 3, plan.mesh.size[axis] * 2, int64_t{1} << 40};
  const int64_t size = sizes[choice.Below(6)];
  if (size == plan.mesh.size[axis]) return {};
  plan.mesh.size[axis] = size;
  return {true, absl::StrCat("axis ", axis, " of size ", size)};
}

Mutated ChangeMicrobatches(Plan& plan, Choice& choice) {
  plan.microbatches += choice.Below(2) == 0 ? 1 : -1;
  return {true, "another number of microbatches"};
}

Mutated ChangeGroupAxes(Plan& plan, Choice& choice) {
  if (plan.groups.empty()) return {};
  GroupKind& group = ChooseFrom(plan.groups, choice);
  if (choice.Below(4) == 0) {
    group.pipeline_ends = !group.pipeline_ends;
  } else {
    group.axes = static_cast<AxisSet>(group.axes ^ (1u << choice.Below(kAxisCount)));
  }
  Mutated result{true, absl::StrCat("group ", group.name, " of other members")};
  return result;
}

Mutated ChangePoolStride(Plan& plan, Choice& choice) {
  const int64_t index = choice.Below(static_cast<int64_t>(plan.pools.size()));
  constexpr int64_t kDeltas[] = {64, -64, 1, int64_t{1} << 55};
  plan.pools[index].stride += kDeltas[choice.Below(4)];
  return {true,
          absl::StrCat("stride ", plan.pools[index].stride, " of pool ", plan.pools[index].name)};
}

Mutated ChangePoolKind(Plan& plan, Choice& choice) {
  const int64_t index = choice.Below(static_cast<int64_t>(plan.pools.size()));
  const MemoryKind kind = static_cast<MemoryKind>(choice.Below(kMemoryKindCount));
  if (kind == plan.pools[index].kind) return {};
  plan.pools[index].kind = kind;
  return {true,
          absl::StrCat("pool ", plan.pools[index].name, " in the arena of ", MemoryKindName(kind))};
}

Mutated ChangePoolBase(Plan& plan, Choice& choice) {
  RankClass& rank_class = ChooseFrom(plan.classes, choice);
  const int64_t pool = choice.Below(static_cast<int64_t>(plan.pools.size()));
  constexpr int64_t kDeltas[] = {64, -64, 1, 4096};
  rank_class.pool_bases[pool] += kDeltas[choice.Below(4)];
  return {true, absl::StrCat("stage ", rank_class.stage, ": pool ", plan.pools[pool].name, " at ",
                             rank_class.pool_bases[pool])};
}

Mutated ChangePoolSlots(Plan& plan, Choice& choice) {
  RankClass& rank_class = ChooseFrom(plan.classes, choice);
  const int64_t pool = choice.Below(static_cast<int64_t>(plan.pools.size()));
  constexpr int32_t kDeltas[] = {1, -1, 1 << 30};
  rank_class.pool_slots[pool] += kDeltas[choice.Below(3)];
  return {true, absl::StrCat("stage ", rank_class.stage, ": pool ", plan.pools[pool].name, " with ",
                             rank_class.pool_slots[pool], " slots")};
}

Mutated ChangeArena(Plan& plan, Choice& choice) {
  RankClass& rank_class = ChooseFrom(plan.classes, choice);
  const int64_t kind = choice.Below(kMemoryKindCount);
  rank_class.arena_bytes[kind] += choice.Below(2) == 0 ? 64 : -64;
  return {true, absl::StrCat("stage ", rank_class.stage, ": arena ", kind, " of ",
                             rank_class.arena_bytes[kind])};
}

Mutated ChangeEvent(Plan& plan, Choice& choice) {
  if (plan.events.empty()) return {};
  Event& event = ChooseFrom(plan.events, choice);
  if (choice.Below(2) == 0) {
    event.stream = static_cast<Stream>((static_cast<int>(event.stream) + 1) % kStreamCount);
  } else {
    event.pool = (event.pool + 1) % static_cast<int>(plan.pools.size());
  }
  return {true, absl::StrCat("event ", event.name, " of another stream or pool")};
}

Mutated ChangeLayers(Plan& plan, Choice& choice) {
  RankClass& rank_class = ChooseFrom(plan.classes, choice);
  auto& layers = rank_class.layers;
  if (layers.empty()) return {};
  const int64_t i = choice.Below(static_cast<int64_t>(layers.size()));
  switch (choice.Below(4)) {
    case 0:
      layers.erase(layers.begin() + i);
      break;
    case 1:
      layers.push_back(layers[i]);
      break;
    case 2:
      layers[i] += 1;
      break;
    default:
      if (layers.size() < 2) return {};
      std::swap(layers[i], layers[(i + 1) % static_cast<int64_t>(layers.size())]);
  }
  return {true, absl::StrCat("stage ", rank_class.stage, " holds other layers")};
}

Mutated ChangeStage(Plan& plan, Choice& choice) {
  RankClass& rank_class = ChooseFrom(plan.classes, choice);
  switch (choice.Below(3)) {
    case 0:
      rank_class.stage += 1;
      break;
    case 1:
      rank_class.has_embedding = !rank_class.has_embedding;
      break;
    default:
      rank_class.has_head = !rank_class.has_head;
  }
  return {true, "a stage of another role"};
}

Mutated ChangeUnit(Plan& plan, Choice& choice) {
  Unit& unit = ChooseFrom(plan.units, choice);
  switch (choice.Below(7)) {
    case 0:
      unit.elements += plan.mesh[Axis::kDpShard] * 64;
      break;
    case 1:
      unit.decay_elements += choice.Below(2) == 0 ? 1 : -1;
      break;
    case 2:
      unit.tp_sharded = !unit.tp_sharded;
      break;
    case 3:
      unit.per_layer = !unit.per_layer;
      break;
    case 4:
      std::swap(unit.first_moment, unit.second_moment);
      break;
    case 5:
      std::swap(unit.master, unit.first_moment);
      break;
    default:
      unit.master_shard_stride += 64;
  }
  return {true, absl::StrCat("unit ", unit.name, " changed")};
}

Mutated ChangeParameter(Plan& plan, Choice& choice) {
  Parameter& parameter = ChooseFrom(plan.params, choice);
  switch (choice.Below(5)) {
    case 0:
      parameter.unit_offset += choice.Below(2) == 0 ? 1 : -1;
      break;
    case 1:
      ++parameter.local_shape[choice.Below(static_cast<int64_t>(parameter.local_shape.size()))];
      break;
    case 2:
      ++parameter.shape[choice.Below(static_cast<int64_t>(parameter.shape.size()))];
      break;
    case 3:
      parameter.tp_dim = parameter.tp_dim < 0 ? 0 : -1;
      break;
    default:
      if (plan.units.size() < 2) return {};
      parameter.unit = (parameter.unit + 1) % static_cast<int>(plan.units.size());
  }
  return {true, absl::StrCat("parameter ", parameter.name, " changed")};
}

Mutated DropParameter(Plan& plan, Choice& choice) {
  const int64_t i = choice.Below(static_cast<int64_t>(plan.params.size()));
  Mutated result{true, absl::StrCat("parameter ", plan.params[i].name, " dropped")};
  plan.params.erase(plan.params.begin() + i);
  return result;
}

Mutated ChangeScalars(Plan& plan, Choice& choice) {
  int* scalars[] = {&plan.scalars.loss, &plan.scalars.grad_norm, &plan.scalars.eval_loss};
  int& scalar = *scalars[choice.Below(3)];
  const int to = static_cast<int>(choice.Below(static_cast<int64_t>(plan.buffers.size())));
  scalar = to;
  return {true, absl::StrCat("a scalar is read from ", plan.buffers[to].name)};
}

}  // namespace

std::vector<MutationKind> TableMutations() {
  return {
      {"change mesh", ChangeMesh},
      {"change microbatches", ChangeMicrobatches},
      {"change group axes", ChangeGroupAxes},
      {"change pool stride", ChangePoolStride},
      {"change pool kind", ChangePoolKind},
      {"change pool base", ChangePoolBase},
      {"change pool slots", ChangePoolSlots},
      {"change arena", ChangeArena},
      {"change event", ChangeEvent},
      {"change layers", ChangeLayers},
      {"change stage", ChangeStage},
      {"change unit", ChangeUnit},
      {"change parameter", ChangeParameter},
      {"drop parameter", DropParameter},
      {"change scalars", ChangeScalars},
  };
}

}  // namespace planc
