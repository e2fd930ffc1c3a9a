// Symbolic execution of initial values, casts, the gradient norm, clipping and AdamW.
#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

constexpr int kPpIndex = static_cast<int>(Axis::kPp);
constexpr int kTpIndex = static_cast<int>(Axis::kTp);
constexpr int kShardIndex = static_cast<int>(Axis::kDpShard);

uint64_t UnitHash(int unit, int layer) {
  return Mix(Mix(5, static_cast<uint64_t>(unit)), static_cast<uint64_t>(layer + 1));
}

}  // namespace

void Executor::Unit(const Site& site) {
  switch (site.instruction->opcode) {
    case Opcode::kInitParameters:
      return InitParameters(site);
    case Opcode::kSumSquares:
      return SumSquares(site);
    case Opcode::kClipCoefficient:
      return Clip(site);
    case Opcode::kCast:
      return Cast(site);
    case Opcode::kAccumulate:
      return Accumulate(site);
    default:
      return Adamw(site);
  }
}

void Executor::InitParameters(const Site& site) {
  const int index = static_cast<int>(site.instruction->source->integers[0]);
  const planc::Unit& unit = plan_.units[index];
  const Buffer& master = plan_.buffers[unit.master];
  const FlatOperand& operand = site.operands[0];
  if (program_ != ProgramKind::kInit) return Bad(site, "training", "overwrites trained weights");
  if (operand.pool != master.pool || operand.begin != master.offset) {
    return BadOperand(site, 0, "training", "is not where the unit keeps its master weights");
  }
  Value value;
  value.kind = ValueKind::kParameter;
  value.role = ValueRole::kMaster;
  value.unit = index;
  value.elements = unit.elements / plan_.mesh[Axis::kDpShard];
  if (plan_.mesh[Axis::kDpShard] > 1) value.layout[kShardIndex] = kRows;
  if (plan_.mesh[Axis::kTp] > 1 && unit.tp_sharded) value.layout[kTpIndex] = kAsUnit;
  const int slot = site.call->slots[operand.binding];
  if (unit.per_layer) {
    value.layer = site.call->layer;
    if (value.layer < 0 || layer_slots_[site.stage][value.layer] != slot) {
      return Bad(site, "training", absl::StrCat("puts layer ", value.layer, " into slot ", slot));
    }
  }
  UnitState* state = StateOf(site.stage, index, value.layer);
  if (state == nullptr || state->ready) {
    return Bad(site, "training", absl::StrCat("initialises unit ", unit.name, " again"));
  }
  state->ready = true;
  Write(site, 0, value);
}

void Executor::Cast(const Site& site) {
  Value value;
  const Value& found = ValueOf(site, 0);
  switch (found.kind) {
    case ValueKind::kParameter:
      if (!ReadParameter(site, 0, &value)) return;
      if (value.role != ValueRole::kMaster) {
        return BadOperand(site, 0, "contents", "is no master weights");
      }
      value.role = ValueRole::kWeight;
      break;
    case ValueKind::kGradient:
      if (!ReadGradient(site, 0, &value)) return;
      break;
    default:
      if (!ReadTensor(site, 0, &value)) return;
  }
  Write(site, 1, value);
}

// Gradients of one microbatch, added to those of the earlier ones.
void Executor::Accumulate(const Site& site) {
  Value part, sum;
  if (!ReadGradient(site, 0, &part)) return;
  if (IsZero(site, 1)) {
    Touch(site, 1);
    return Write(site, 1, part);
  }
  if (!ReadGradient(site, 1, &sum) || !ApplyLayouts(site, Values{&part, &sum})) return;
  if (part.unit != sum.unit || part.layer != sum.layer || part.first_element != sum.first_element ||
      part.elements != sum.elements || part.covered != sum.covered) {
    return BadOperand(site, 1, "gradient", "is the gradient of other parameters");
  }
  sum.count += part.count;
  sum.contributions += part.contributions;
  Write(site, 1, sum);
}

// One contribution of each operation of the forward pass that used a parameter of the unit, on
// every microbatch: parameters that are used twice have two.
bool Executor::CheckGradientIsComplete(const Site& site, const Value& gradient) {
  const planc::Unit& unit = plan_.units[gradient.unit];
  const bool sharded = gradient.layout[kShardIndex] == kRows;
  const int64_t all = gradient.elements * (sharded ? plan_.mesh[Axis::kDpShard] : 1);
  if (gradient.first_element != 0 || all != unit.elements) {
    Bad(site, "gradient", absl::StrCat("gets a part of unit ", unit.name, " only"));
    return false;
  }
  if (gradient.covered != parameters_.ParameterElements(gradient.unit)) {
    Bad(site, "gradient", absl::StrCat("some parameters of unit ", unit.name, " have no gradient"));
    return false;
  }
  if (gradient.layout[kPpIndex] != kReplicated) {
    Bad(site, "layout",
        absl::StrCat("the gradient of unit ", unit.name,
                     " is not summed over the stages that hold it"));
    return false;
  }
  const Contributions& expected = ContributionsTo(gradient.unit, gradient.layer);
  if (gradient.count != expected.count || gradient.contributions != expected.sum) {
    Bad(site, "gradient",
        absl::StrCat("the gradient of unit ", unit.name, " has ", gradient.count,
                     " contributions, not one of each of ", expected.count,
                     " uses of its parameters"));
    return false;
  }
  return true;
}

void Executor::SumSquares(const Site& site) {
  Value gradient, sum;
  if (!ReadGradient(site, 0, &gradient) ||
      !ReadScalar(site, 1, ValueRole::kSquareSum, true, &sum) ||
      !CheckGradientIsComplete(site, gradient) || !ApplyLayouts(site, Values{&gradient, &sum})) {
    return;
  }
  const bool stages = plan_.mesh[Axis::kPp] > 1;
  if (sum.kind == ValueKind::kScalar && stages && sum.layout[kPpIndex] != kPartialSum) {
    return BadOperand(site, 1, "layout", "was already summed over the stages");
  }
  // Each stage adds the units that it holds; once_axes would leave out all stages but the first.
  if (stages && (site.instruction->source->integers[1] & AxisBit(Axis::kPp)) != 0) {
    return Bad(site, "training", "is left out on all stages but the first");
  }
  sum.kind = ValueKind::kScalar;
  sum.role = ValueRole::kSquareSum;
  sum.layout = codes_[1];
  sum.layout[kPpIndex] = stages ? kPartialSum : kReplicated;
  sum.count += 1;
  sum.contributions += UnitHash(gradient.unit, gradient.layer);
  Write(site, 1, sum);
}

void Executor::Clip(const Site& site) {
  Value sum, loss;
  if (!ReadScalar(site, 0, ValueRole::kSquareSum, false, &sum) ||
      !ReadScalar(site, 1, ValueRole::kLoss, false, &loss) ||
      !ApplyLayouts(site, Values{&sum, &loss})) {
    return;
  }
  int64_t count = 0;
  uint64_t expected = 0;
  for (size_t u = 0; u < plan_.units.size(); ++u) {
    const bool per_layer = plan_.units[u].per_layer;
    for (int64_t layer = per_layer ? 0 : -1; layer < (per_layer ? layers_ : 0); ++layer) {
      ++count;
      expected += UnitHash(static_cast<int>(u), static_cast<int>(layer));
    }
  }
  if (sum.layout[kPpIndex] != kReplicated) {
    return BadOperand(site, 0, "layout", "is not summed over the pipeline stages");
  }
  if (sum.count != count || sum.contributions != expected) {
    return BadOperand(
        site, 0, "training",
        absl::StrCat("sums ", Counted(sum.count, "unit"), ", not each of ", count, " once"));
  }
  if (loss.layout[kPpIndex] != kReplicated || loss.count != plan_.microbatches) {
    return BadOperand(site, 1, "training", "is not the loss of the whole step");
  }
  Value result;
  result.kind = ValueKind::kScalar;
  result.role = ValueRole::kCoefficient;
  Write(site, 2, result);
  result.role = ValueRole::kNorm;
  Write(site, 3, result);
}

bool Executor::CheckUnitRange(const Site& site, int k, const Value& value, const Value& gradient,
                              ValueRole role) {
  if (value.role == role && value.unit == gradient.unit && value.layer == gradient.layer &&
      value.first_element == 0 && value.elements == gradient.elements) {
    return true;
  }
  BadOperand(site, k, "training", "is the state of other parameters than the gradient's");
  return false;
}

void Executor::Adamw(const Site& site) {
  Value gradient, coefficient, master, first, second;
  if (!ReadGradient(site, 0, &gradient) ||
      !ReadScalar(site, 1, ValueRole::kCoefficient, false, &coefficient) ||
      !ReadParameter(site, 2, &master) || !ReadParameter(site, 3, &first) ||
      !ReadParameter(site, 4, &second) || !CheckGradientIsComplete(site, gradient) ||
      !CheckUnitRange(site, 2, master, gradient, ValueRole::kMaster) ||
      !CheckUnitRange(site, 3, first, gradient, ValueRole::kFirstMoment) ||
      !CheckUnitRange(site, 4, second, gradient, ValueRole::kSecondMoment) ||
      !ApplyLayouts(site, Values{&gradient, &coefficient, &master, &first, &second})) {
    return;
  }
  const planc::Unit& unit = plan_.units[gradient.unit];
  if (site.instruction->source->integers[1] != unit.decay_elements) {
    return Bad(site, "training",
               absl::StrCat("decays ", Counted(site.instruction->source->integers[1], "element"),
                            ", not ", unit.decay_elements));
  }
  UnitState* state = StateOf(site.stage, gradient.unit, gradient.layer);
  if (state == nullptr || state->version != master.version) {
    return Bad(site, "training", "updates master weights that are out of date");
  }
  ++state->updates;
  master.version = ++state->version;
  master.layout = codes_[2];
  Write(site, 2, master);
  Write(site, 3, first);
  Write(site, 4, second);
  if (site.instruction->opcode != Opcode::kAdamwCast) return;
  master.role = ValueRole::kWeight;
  Write(site, 5, master);
}

}  // namespace planc::verifying
