// Ranges of flat units: weights that operations read as matrices, gradients that they add to, and
// whole units put together from the views that were written.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

constexpr int kPpIndex = static_cast<int>(Axis::kPp);
constexpr int kTpIndex = static_cast<int>(Axis::kTp);
constexpr int kShardIndex = static_cast<int>(Axis::kDpShard);

}  // namespace

bool Executor::CheckLayer(const Site& site, int layer) {
  if (layer < 0 || site.call->layer < 0 || site.call->layer == layer) return true;
  Bad(site, "contents", absl::StrCat("uses the parameters of layer ", layer));
  return false;
}

Executor::UnitState* Executor::StateOf(int stage, int unit, int layer) {
  std::vector<UnitState>& slots = units_[stage][unit];
  const int slot = layer < 0 ? 0 : layer_slots_[stage][layer];
  return slot >= 0 && slot < static_cast<int>(slots.size()) ? &slots[slot] : nullptr;
}

// Operand k as a weight matrix that every rank of dp_replicate and dp_shard has whole.
bool Executor::ReadWeight(const Site& site, int k, Value* value, WeightUse* use) {
  const FlatOperand& operand = site.operands[k];
  Touch(site, k);
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  const int index = site.memory->ValueAt(first);
  for (int64_t c = first + 1; c < first + operand.last_cell - operand.first_cell; ++c) {
    if (site.memory->ValueAt(c) != index) {
      BadOperand(site, k, "contents", "is only partly written");
      return false;
    }
  }
  const Value& found = store_[index];
  if (found.kind != ValueKind::kParameter || found.dtype != operand.dtype ||
      (found.role != ValueRole::kWeight && found.role != ValueRole::kMaster)) {
    BadOperand(site, k, index == ValueStore::kNoneIndex ? "uninitialised" : "contents",
               "does not hold weights");
    return false;
  }
  for (Axis axis : axes_) {
    if (axis != Axis::kTp && found.layout[static_cast<int>(axis)] != kReplicated) {
      BadOperand(site, k, "layout", "holds weights that are not gathered");
      return false;
    }
  }
  const UnitState* state = StateOf(site.stage, found.unit, found.layer);
  if (found.tile || operand.tile || state == nullptr || state->version != found.version) {
    BadOperand(site, k, "contents", "holds weights from before the last update");
    return false;
  }
  const int64_t size = SizeOf(operand.dtype);
  const int64_t at = found.first_element + (operand.begin - found.begin) / size;
  const int range = parameters_.Find(found.unit, at, operand.bytes / size,
                                     &range_cache_[site.instruction->first_operand + k]);
  const WeightRange& weight = parameters_.At(range);
  if (operand.begin < found.begin || operand.end > found.end || !weight.valid ||
      weight.rows != operand.rows || weight.columns != operand.columns) {
    BadOperand(site, k, "contents",
               absl::StrCat("is not a parameter of ", operand.rows, " x ", operand.columns));
    return false;
  }
  use->range = range;
  use->layer = found.layer;
  use->hash =
      Mix(Mix(Mix(static_cast<uint64_t>(found.unit) + 1, static_cast<uint64_t>(found.layer + 1)),
              static_cast<uint64_t>(at)),
          static_cast<uint64_t>(weight.elements));
  value->kind = ValueKind::kParameter;
  value->hash = use->hash;
  value->layout[kTpIndex] = weight.tp;
  return CheckLayer(site, found.layer) && CheckDeclared(site, k, value->layout);
}

// A rank's own tile of a range that it has whole.
bool Executor::SliceTile(const Site& site, int k, Value* value) {
  const FlatOperand& operand = site.operands[k];
  if (operand.tile == value->tile) {
    if (operand.stride == value->stride) return true;
  } else if (operand.tile && operand.stride == operand.bytes &&
             value->layout[kShardIndex] == kReplicated) {
    value->layout[kShardIndex] = kRows;
    value->elements /= plan_.mesh[Axis::kDpShard];
    return true;
  }
  BadOperand(site, k, "contents",
             operand.tile ? "does not hold its shards" : "holds one shard only");
  return false;
}

// Operand k as a range of master weights, moments or compute weights, as it was written.
bool Executor::ReadParameter(const Site& site, int k, Value* value) {
  const FlatOperand& operand = site.operands[k];
  Touch(site, k);
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  const int index = site.memory->ValueAt(first);
  const Value& found = store_[index];
  bool whole = found.kind == ValueKind::kParameter && found.begin == operand.begin &&
               found.end == operand.end && found.dtype == operand.dtype;
  for (int64_t c = first + 1; c < first + operand.last_cell - operand.first_cell; ++c) {
    whole = whole && site.memory->ValueAt(c) == index;
  }
  if (!whole) {
    BadOperand(site, k, index == ValueStore::kNoneIndex ? "uninitialised" : "contents",
               "does not hold a whole unit of parameters");
    return false;
  }
  *value = found;
  return SliceTile(site, k, value) && CheckLayer(site, found.layer) &&
         CheckDeclared(site, k, value->layout);
}

// Operand k as the running sum of one parameter's gradient: zeros, or what was added before.
bool Executor::ReadAccumulator(const Site& site, int k, Value* value) {
  const FlatOperand& operand = site.operands[k];
  Touch(site, k);
  if (IsZero(site, k)) {
    value->kind = ValueKind::kZero;
    value->layout.fill(kAnyLayout);
    return true;
  }
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  const int index = site.memory->ValueAt(first);
  const Value& found = store_[index];
  bool whole = found.kind == ValueKind::kGradient && found.begin == operand.begin &&
               found.end == operand.end && found.dtype == operand.dtype && !found.tile &&
               !operand.tile;
  for (int64_t c = first + 1; c < first + operand.last_cell - operand.first_cell; ++c) {
    whole = whole && site.memory->ValueAt(c) == index;
  }
  if (!whole) {
    BadOperand(site, k, index == ValueStore::kNoneIndex ? "uninitialised" : "gradient",
               "is neither zeroed nor a sum of this gradient");
    return false;
  }
  *value = found;
  if (found.layout[kTpIndex] == kAsUnit) {
    const int range = parameters_.Find(found.unit, found.first_element, found.elements,
                                       &range_cache_[site.instruction->first_operand + k]);
    value->layout[kTpIndex] = parameters_.At(range).tp;
  }
  return CheckDeclared(site, k, value->layout);
}

// Adds what `dy` contributes to the gradient of weight number `at` of `forward`; `before` is what
// the accumulator holds and codes_[k] the layout of the contribution.
void Executor::AddGradient(const Site& site, int k, const Value& before, Definition& forward,
                           int at, const Value& dy) {
  const WeightUse& weight = forward.weights[at];
  if (weight.range < 0) return Bad(site, "gradient", "is of no weight");
  const WeightRange& range = parameters_.At(weight.range);
  const FlatOperand& operand = site.operands[k];
  const bool starts = before.kind == ValueKind::kZero;
  if (operand.rows != range.rows || operand.columns != range.columns ||
      (!starts &&
       (before.unit != range.unit || before.layer != weight.layer ||
        before.first_element != range.first_element || before.elements != range.elements))) {
    return BadOperand(site, k, "gradient", "is the gradient of another parameter");
  }
  if (dy.microbatch < 0) return Bad(site, "gradient", "belongs to no microbatch");
  if (!CheckLayer(site, weight.layer)) return;
  Value gradient;
  gradient.kind = ValueKind::kGradient;
  gradient.layout = codes_[k];
  // Each stage with a copy of the unit has the gradient of its own use of it.
  gradient.layout[kPpIndex] =
      !plan_.units[range.unit].per_layer && holders_[range.unit] > 1 ? kPartialSum : kReplicated;
  if (!CheckDeclared(site, k, gradient.layout)) return;
  uint8_t& tp = gradient.layout[kTpIndex];
  if (range.tp != kReplicated) {
    if (tp != range.tp) {
      return BadOperand(
          site, k, "layout",
          absl::StrCat("is ", CodeText(tp), " on tp, its weight ", CodeText(range.tp)));
    }
    tp = kAsUnit;
  }
  gradient.unit = range.unit;
  gradient.layer = weight.layer;
  gradient.first_element = range.first_element;
  gradient.elements = range.elements;
  gradient.covered = range.elements;
  gradient.count = before.count + 1;
  gradient.contributions = before.contributions + UseHash(forward, at);
  forward.credited = true;
  Write(site, k, gradient);
}

// Adds `view`, found in bytes begin..end of the slot, to the gradient that operand k holds.
bool Executor::AddView(const Site& site, int k, int64_t begin, int64_t end, const Value& view,
                       Value* gradient) {
  const FlatOperand& operand = site.operands[k];
  if (view.kind != ValueKind::kGradient || view.begin != begin || view.end != end ||
      view.dtype != operand.dtype ||
      (view.tile && (view.begin != operand.begin || view.end != operand.end))) {
    BadOperand(site, k, view.kind == ValueKind::kNone ? "uninitialised" : "gradient",
               "holds something else than whole gradients");
    return false;
  }
  Value part = view;
  // The position in the unit of the operand's first element.
  part.first_element -= (begin - operand.begin) / SizeOf(operand.dtype);
  if (gradient->kind == ValueKind::kNone) {
    *gradient = part;
    return true;
  }
  if (part.unit != gradient->unit || part.layer != gradient->layer ||
      part.first_element != gradient->first_element || part.layout != gradient->layout) {
    BadOperand(site, k, "gradient", "holds gradients that do not go together");
    return false;
  }
  gradient->covered += part.covered;
  gradient->count += part.count;
  gradient->contributions += part.contributions;
  return true;
}

// Operand k as a range of one unit's gradient, put together from the views in it. Zeros between
// them are padding, which counts as covered by nothing.
bool Executor::ReadGradient(const Site& site, int k, Value* value) {
  const FlatOperand& operand = site.operands[k];
  Touch(site, k);
  const int64_t base = site.memory->CellOf(operand, site.call->slots);
  const std::vector<int64_t>& cuts = flat_.cuts[operand.pool];
  Value gradient;
  for (int c = operand.first_cell; c < operand.last_cell;) {
    const int index = site.memory->ValueAt(base + c - operand.first_cell);
    int end = c + 1;
    while (end < operand.last_cell &&
           site.memory->ValueAt(base + end - operand.first_cell) == index) {
      ++end;
    }
    if (index != ValueStore::kZeroIndex &&
        !AddView(site, k, cuts[c], cuts[end], store_[index], &gradient)) {
      return false;
    }
    c = end;
  }
  if (gradient.kind == ValueKind::kNone) {
    BadOperand(site, k, "gradient", "is zero: no gradient was added to it");
    return false;
  }
  const bool sharded = gradient.layout[kShardIndex] == kRows;
  if (!sharded) gradient.elements = (operand.end - operand.begin) / SizeOf(operand.dtype);
  gradient.begin = operand.begin;
  gradient.end = operand.end;
  *value = gradient;
  return SliceTile(site, k, value) && CheckLayer(site, gradient.layer) &&
         CheckDeclared(site, k, value->layout);
}

}  // namespace planc::verifying
