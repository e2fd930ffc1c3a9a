#include "planc/command/shards.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/spec/suggest.h"

namespace planc {
namespace {

std::string NameAt(const Parameter& parameter, int layer) {
  return absl::StrReplaceAll(parameter.name, {{"{layer}", absl::StrCat(layer)}});
}

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

// The optimizer instruction that updates the unit, if a plan has one.
const Instruction* UpdateOf(const Plan& plan, const Unit& unit) {
  for (const Block& block : plan.blocks) {
    for (const Instruction& instruction : block.instructions) {
      const int master = OperandIndex(instruction.opcode, "master");
      const bool updates =
          instruction.opcode == Opcode::kAdamw || instruction.opcode == Opcode::kAdamwCast;
      if (updates && instruction.operands[master].buffer == unit.master) return &instruction;
    }
  }
  return nullptr;
}

// The buffer with the unit's compute weights of one tp rank.
int ComputeBuffer(const Plan& plan, const Unit& unit, const Instruction& update) {
  const int weight = OperandIndex(update.opcode, "weight");
  const int shard = weight < 0 ? unit.master : update.operands[weight].buffer;
  for (const Block& block : plan.blocks) {
    for (const Instruction& instruction : block.instructions) {
      if (instruction.opcode == Opcode::kAllGather && instruction.operands[0].buffer == shard) {
        return instruction.operands[1].buffer;
      }
    }
  }
  return shard;
}

bool Overlap(const Buffer& a, const Buffer& b) {
  return a.pool == b.pool && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Whether the instruction reduces or adds its first operand into one of the gradients.
bool Produces(const Plan& plan, const Instruction& instruction, const std::set<int>& gradients) {
  const Opcode opcode = instruction.opcode;
  const bool moves = opcode == Opcode::kReduceScatter || opcode == Opcode::kAccumulate ||
                     opcode == Opcode::kCast || opcode == Opcode::kAllGather;
  if (!moves && opcode != Opcode::kAllReduce) return false;
  const Buffer& output = plan.buffers[instruction.operands[moves ? 1 : 0].buffer];
  return std::any_of(gradients.begin(), gradients.end(),
                     [&](int gradient) { return Overlap(plan.buffers[gradient], output); });
}

// Slot of a pool with one slot for each layer (or one slot) that belongs to the layer.
int64_t SlotOf(const RankClass& rank_class, int layer) {
  if (layer < 0) return 0;
  const auto found = std::find(rank_class.layers.begin(), rank_class.layers.end(), layer);
  return found - rank_class.layers.begin();
}

int64_t OffsetOf(const Plan& plan, const RankClass& rank_class, const Buffer& buffer,
                 int64_t slot) {
  return rank_class.pool_bases[buffer.pool] + slot * plan.pools[buffer.pool].stride + buffer.offset;
}

bool Holds(const Plan& plan, const RankClass& rank_class, const Unit& unit, int layer) {
  if (unit.per_layer) {
    return std::count(rank_class.layers.begin(), rank_class.layers.end(), layer) > 0;
  }
  return rank_class.pool_slots[plan.buffers[unit.master].pool] > 0;
}

// Fills in what one rank holds.
class ShardBuilder {
 public:
  ShardBuilder(const Plan& plan, const NamedParameter& named)
      : plan_(plan),
        parameter_(plan.params[named.index]),
        unit_(plan.units[parameter_.unit]),
        layer_(named.layer) {
    const Instruction* update = UpdateOf(plan, unit_);
    if (update != nullptr) compute_ = ComputeBuffer(plan, unit_, *update);
  }

  bool HeldBy(const RankClass& rank_class) const { return Holds(plan_, rank_class, unit_, layer_); }

  ParameterShard Build(int64_t rank, const RankClass& rank_class) const {
    const Coordinates coordinates = plan_.mesh.CoordinatesOf(rank);
    ParameterShard shard;
    shard.rank = rank;
    FillBox(coordinates[static_cast<int>(Axis::kTp)], &shard);
    FillMaster(coordinates[static_cast<int>(Axis::kDpShard)], rank_class, &shard);
    FillCompute(rank_class, &shard);
    return shard;
  }

 private:
  void FillBox(int64_t tp, ParameterShard* shard) const {
    shard->box_begin.assign(parameter_.shape.size(), 0);
    shard->box_end = parameter_.shape;
    const int dim = parameter_.tp_dim;
    if (dim < 0) return;
    const int64_t local = parameter_.local_shape[dim];
    shard->box_begin[dim] = std::min(tp * local, parameter_.shape[dim]);
    shard->box_end[dim] = std::min((tp + 1) * local, parameter_.shape[dim]);
  }

  void FillMaster(int64_t dp_shard, const RankClass& rank_class, ParameterShard* shard) const {
    const int64_t length = unit_.elements / plan_.mesh[Axis::kDpShard];
    const int64_t first = dp_shard * length;
    const int64_t own = parameter_.unit_offset;
    const int64_t begin = std::max(first, own);
    const int64_t end = std::min(first + length, own + Product(parameter_.local_shape));
    const Buffer& master = plan_.buffers[unit_.master];
    shard->master.buffer = master.name;
    shard->master.arena = plan_.pools[master.pool].kind;
    if (begin >= end) return;
    shard->master_begin = begin - own;
    shard->master_end = end - own;
    const int64_t size = SizeOf(master.dtype);
    shard->master.offset = OffsetOf(plan_, rank_class, master, SlotOf(rank_class, layer_)) +
                           dp_shard * unit_.master_shard_stride + (begin - first) * size;
    shard->master.bytes = (end - begin) * size;
  }

  void FillCompute(const RankClass& rank_class, ParameterShard* shard) const {
    const bool gathered = plan_.job.parallelism().zero() == 3 && plan_.mesh[Axis::kDpShard] > 1;
    if (compute_ < 0 || gathered) return;
    const Buffer& compute = plan_.buffers[compute_];
    const int64_t size = SizeOf(compute.dtype);
    shard->compute = {compute.name, plan_.pools[compute.pool].kind,
                      OffsetOf(plan_, rank_class, compute, SlotOf(rank_class, layer_)) +
                          parameter_.unit_offset * size,
                      Product(parameter_.local_shape) * size};
  }

  const Plan& plan_;
  const Parameter& parameter_;
  const Unit& unit_;
  const int layer_;
  int compute_ = -1;
};

// Whether a name is about a layer whose number is too large.
bool IsLayerBeyond(const Plan& plan, const std::string& name) {
  constexpr char kLayers[] = "model.layers.";
  if (!absl::StartsWith(name, kLayers)) return false;
  const size_t begin = sizeof(kLayers) - 1;
  int64_t layer = 0;
  return absl::SimpleAtoi(name.substr(begin, name.find('.', begin) - begin), &layer) &&
         layer >= plan.job.model().layers();
}

}  // namespace

std::vector<NamedParameter> AllParameters(const Plan& plan) {
  std::vector<NamedParameter> all;
  const int layers = static_cast<int>(plan.job.model().layers());
  for (size_t i = 0; i < plan.params.size(); ++i) {
    const Parameter& parameter = plan.params[i];
    const bool per_layer = plan.units[parameter.unit].per_layer;
    for (int layer = 0; layer < (per_layer ? layers : 1); ++layer) {
      all.push_back({NameAt(parameter, layer), static_cast<int>(i), per_layer ? layer : -1});
    }
  }
  return all;
}

absl::StatusOr<std::vector<NamedParameter>> FindParameters(const Plan& plan,
                                                           const std::string& pattern) {
  const std::vector<NamedParameter> all = AllParameters(plan);
  std::vector<NamedParameter> found;
  std::vector<std::string> names;
  std::string part_of;  // the first name that contains what was asked for
  for (const NamedParameter& one : all) {
    if (fnmatch(pattern.c_str(), one.name.c_str(), 0) == 0 || pattern + ".weight" == one.name) {
      found.push_back(one);
    }
    names.push_back(one.name);
    if (part_of.empty() && absl::StrContains(one.name, pattern)) part_of = one.name;
  }
  if (!found.empty()) return found;
  std::string hint;
  const std::string nearest = Nearest(pattern, names);
  if (IsLayerBeyond(plan, pattern)) {
    hint = absl::StrCat(": the layers are 0 to ", plan.job.model().layers() - 1);
  } else if (!part_of.empty()) {
    hint = absl::StrCat("; `*", pattern, "*` finds those that contain it, such as ", part_of);
  } else if (!nearest.empty()) {
    hint = absl::StrCat("; did you mean `", nearest, "`?");
  }
  return absl::NotFoundError(absl::StrCat("the model has no parameter `", pattern, "`", hint));
}

std::vector<ParameterShard> ShardsOf(const Plan& plan, const NamedParameter& parameter) {
  const ShardBuilder builder(plan, parameter);
  std::vector<ParameterShard> shards;
  const int64_t ranks = plan.mesh.WorldSize() / plan.mesh[Axis::kPp];
  for (const RankClass& rank_class : plan.classes) {
    if (!builder.HeldBy(rank_class)) continue;
    for (int64_t i = 0; i < ranks; ++i) {
      shards.push_back(builder.Build(rank_class.stage * ranks + i, rank_class));
    }
  }
  return shards;
}

std::vector<GradientReduction> ReductionsOf(const Plan& plan, const NamedParameter& parameter) {
  const Unit& unit = plan.units[plan.params[parameter.index].unit];
  const Instruction* update = UpdateOf(plan, unit);
  if (update == nullptr) return {};
  // From the gradient that the optimizer reads back to the one that the backward pass writes.
  std::set<int> gradients = {update->operands[OperandIndex(update->opcode, "g")].buffer};
  std::set<const Instruction*> steps;
  for (bool found = true; found;) {
    found = false;
    for (const Block& block : plan.blocks) {
      for (const Instruction& instruction : block.instructions) {
        if (instruction.label != Label::kGradientSync || steps.count(&instruction) > 0) continue;
        if (!Produces(plan, instruction, gradients)) continue;
        gradients.insert(instruction.operands[0].buffer);
        steps.insert(&instruction);
        found = true;
      }
    }
  }
  std::vector<GradientReduction> reductions;
  for (const Block& block : plan.blocks) {
    for (const Instruction& instruction : block.instructions) {
      if (steps.count(&instruction) == 0 || instruction.group < 0) continue;
      const GradientReduction reduction{instruction.opcode, instruction.group};
      if (std::count(reductions.begin(), reductions.end(), reduction) == 0) {
        reductions.push_back(reduction);
      }
    }
  }
  return reductions;
}

}  // namespace planc
