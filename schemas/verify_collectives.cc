// Symbolic execution of collectives and transfers: they leave the logical tensor as it is and
// change its layout, or move it to another stage.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

constexpr int kPpIndex = static_cast<int>(Axis::kPp);

}  // namespace

void Executor::Collective(const Site& site) {
  switch (site.instruction->opcode) {
    case Opcode::kReduceScatter:
      return ReduceScatter(site);
    case Opcode::kAllGather:
      return AllGather(site);
    default:
      return AllReduce({site});
  }
}

// The only axis of the group with several ranks, when there is exactly one.
bool Executor::SingleAxis(const Site& site, Axis* axis) {
  int found = 0;
  for (Axis a : axes_) {
    if ((site.instruction->group_axes & AxisBit(a)) == 0) continue;
    *axis = a;
    ++found;
  }
  if (found == 1) return true;
  Bad(site, "layout", "needs a group along one axis");
  return false;
}

// Changes the layout of a value on the axes of the group.
bool Executor::Reduce(const Site& site, Value* value) {
  const bool maximum =
      site.instruction->opcode == Opcode::kAllReduce && site.instruction->source->integers[1] != 0;
  for (Axis axis : axes_) {
    if ((site.instruction->group_axes & AxisBit(axis)) == 0) continue;
    uint8_t& code = value->layout[static_cast<int>(axis)];
    const uint8_t before = code;
    if (ApplyCollectiveRule(site.instruction->opcode, maximum, before, &code)) continue;
    BadOperand(site, 0, "layout",
               absl::StrCat("is ", CodeText(before), " on axis ", AxisName(axis),
                            ", which the collective does not convert"));
    return false;
  }
  return true;
}

void Executor::ReduceScatter(const Site& site) {
  Axis axis = Axis::kTp;
  if (!SingleAxis(site, &axis)) return;
  const int64_t members = plan_.mesh[axis];
  Value value;
  if (ValueOf(site, 0).kind == ValueKind::kTensor) {
    if (!ReadTensor(site, 0, &value) || !Reduce(site, &value)) return;
    if (value.rows % members != 0) return Bad(site, "layout", "cannot split the rows");
    value.rows /= members;
    return Write(site, 1, value);
  }
  if (!ReadGradient(site, 0, &value) || !Reduce(site, &value)) return;
  if (axis != Axis::kDpShard || site.operands[0].tile || value.first_element != 0 ||
      value.elements != plan_.units[value.unit].elements) {
    return BadOperand(site, 0, "gradient", "is no whole unit to be split over dp_shard");
  }
  UnitState* const state = StateOf(site.stage, value.unit, value.layer);
  if (state != nullptr) {
    ++state->reduces;
    state->reduces_in_place = site.operands[0].pool == site.operands[1].pool;
  }
  value.elements /= members;
  Write(site, 1, value);
}

void Executor::AllGather(const Site& site) {
  Axis axis = Axis::kTp;
  if (!SingleAxis(site, &axis)) return;
  const int64_t members = plan_.mesh[axis];
  Value value;
  if (ValueOf(site, 0).kind == ValueKind::kTensor) {
    if (!ReadTensor(site, 0, &value) || !Reduce(site, &value)) return;
    value.rows *= members;
    return Write(site, 1, value);
  }
  if (!ReadParameter(site, 0, &value) || !Reduce(site, &value)) return;
  if (axis != Axis::kDpShard || site.operands[1].tile || value.first_element != 0 ||
      value.elements * members != plan_.units[value.unit].elements) {
    return BadOperand(site, 0, "contents", "is no shard of a unit along dp_shard");
  }
  UnitState* const state = StateOf(site.stage, value.unit, value.layer);
  if (state != nullptr) {
    ++state->gathers;
    state->gathered_in = site.operands[1].pool;
    state->gathers_in_place = site.operands[0].pool == site.operands[1].pool;
  }
  value.elements *= members;
  Write(site, 1, value);
}

void Executor::ExecuteAcross(const std::vector<Site>& sites) {
  if (!report_.ok()) return;
  for (const Site& site : sites) {
    if (!site.instruction->aliases.empty()) CheckAliases(site);
  }
  if (sites[0].instruction->opcode != Opcode::kAllReduce) {
    return Bad(sites[0], "layout", "converts layouts across pipeline stages");
  }
  const FlatOperand& x = sites[0].operands[0];
  for (const Site& site : sites) {
    const FlatOperand& other = site.operands[0];
    if (other.pool != x.pool || other.begin != x.begin || other.end != x.end) {
      return Bad(site, "contents",
                 absl::StrCat("reduces ", BufferName(site, 0), ", stage ", sites[0].stage,
                              " reduces ", BufferName(sites[0], 0)));
    }
  }
  AllReduce(sites);
  for (const Site& site : sites) WriteScratch(site);
}

// Sums (or takes the maximum of) operand 0 over the group; the sites are those of one
// representative rank of each stage in it. Values that lie beside each other are reduced together.
void Executor::AllReduce(const std::vector<Site>& sites) {
  const FlatOperand& x = sites[0].operands[0];
  for (const Site& site : sites) Touch(site, 0);
  if (x.tile) return AllReduceTile(sites);
  const int64_t count = x.last_cell - x.first_cell;
  for (int64_t at = 0; at < count;) {
    const int length = ReduceRun(sites, at);
    if (length == 0) return;
    at += length;
  }
}

// Own shards inside whole gradients.
void Executor::AllReduceTile(const std::vector<Site>& sites) {
  std::vector<Value> values(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!ReadGradient(sites[i], 0, &values[i])) return;
  }
  Value sum;
  if (!Merge(sites, values, &sum)) return;
  for (const Site& site : sites) Write(site, 0, sum);
}

// Reduces the value that begins `at` cells into operand 0, and returns how many cells it has; 0 on
// an error.
int Executor::ReduceRun(const std::vector<Site>& sites, int64_t at) {
  const FlatOperand& x = sites[0].operands[0];
  const std::vector<int64_t>& cuts = flat_.cuts[x.pool];
  const int first = x.first_cell + static_cast<int>(at);
  std::vector<Value> values;
  const Value* some = nullptr;
  for (const Site& site : sites) {
    const int64_t base = site.memory->CellOf(x, site.call->slots) + at;
    const Value& value = store_[site.memory->ValueAt(base)];
    values.push_back(value);
    if (value.kind != ValueKind::kZero && some == nullptr) some = &value;
  }
  if (some == nullptr) return 1;
  int length = 1;
  while (first + length < x.last_cell && cuts[first + length] < some->end) ++length;
  for (size_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    const int64_t base = site.memory->CellOf(x, site.call->slots) + at;
    const int index = site.memory->ValueAt(base);
    bool whole = values[i].kind == ValueKind::kZero ||
                 (values[i].begin == cuts[first] && values[i].end == cuts[first + length]);
    for (int c = 1; c < length; ++c) whole = whole && site.memory->ValueAt(base + c) == index;
    if (!whole || (values[i].kind != ValueKind::kZero && values[i].dtype != x.dtype)) {
      BadOperand(site, 0, index == ValueStore::kNoneIndex ? "uninitialised" : "contents",
                 "does not hold whole values of its type");
      return 0;
    }
    if (values[i].kind == ValueKind::kTensor && !CheckMicrobatch(site, values[i])) return 0;
  }
  Value sum;
  if (!Merge(sites, values, &sum)) return 0;
  for (const Site& site : sites) {
    const int64_t base = site.memory->CellOf(site.operands[0], site.call->slots) + at;
    if (!site.memory->Write(site.instruction->stream, base, length, store_.Add(sum))) {
      BadOperand(site, 0, "order", "is reduced while another stream may still use it");
    }
  }
  return length;
}

// The sum over the stages of the group, in its layout after the reduction.
bool Executor::Merge(const std::vector<Site>& sites, const std::vector<Value>& values, Value* sum) {
  const Site& site = sites[0];
  sum->kind = ValueKind::kNone;
  for (const Value& value : values) {
    if (value.kind == ValueKind::kZero) continue;
    if (sum->kind == ValueKind::kNone) {
      *sum = value;
      continue;
    }
    if (value.kind != sum->kind || value.role != sum->role || value.layout != sum->layout ||
        value.unit != sum->unit || value.layer != sum->layer || value.covered != sum->covered ||
        value.first_element != sum->first_element || value.elements != sum->elements ||
        value.kind == ValueKind::kTensor) {
      BadOperand(site, 0, "contents", "holds different values on the stages");
      return false;
    }
    sum->count += value.count;
    sum->contributions += value.contributions;
  }
  if (sum->kind != ValueKind::kTensor && sum->kind != ValueKind::kGradient &&
      sum->kind != ValueKind::kScalar) {
    BadOperand(site, 0, sum->kind == ValueKind::kNone ? "uninitialised" : "contents",
               "holds nothing to reduce");
    return false;
  }
  sum->references = 0;
  if (!Reduce(site, sum)) return false;
  if (!site.instruction->crosses_stages) return true;
  // Copies of a tied table on both ends each have the gradient of their own use.
  const bool copies = site.instruction->pipeline_ends && sum->kind == ValueKind::kGradient;
  if (sum->layout[kPpIndex] != kPartialSum || site.instruction->source->integers[1] != 0) {
    BadOperand(site, 0, "layout", "is no sum over the stages of the group");
    return false;
  }
  if (sum->kind == ValueKind::kGradient && !copies) {
    BadOperand(site, 0, "layout", "is summed over stages that do not hold the unit");
    return false;
  }
  if (!copies && site.instruction->pipeline_ends && plan_.mesh[Axis::kPp] > 2) {
    BadOperand(site, 0, "layout", "is summed over the first and last stage only");
    return false;
  }
  sum->layout[kPpIndex] = kReplicated;
  return true;
}

void Executor::ExecuteTransfer(const Site& send, const Site& receive) {
  if (!report_.ok()) return;
  const FlatOperand& from = send.operands[0];
  const FlatOperand& to = receive.operands[0];
  if (from.dtype != to.dtype || from.bytes != to.bytes) {
    return Bad(receive, "collective",
               absl::StrCat("receives ", Counted(to.bytes, "byte"), " of ", DTypeName(to.dtype),
                            ", stage ", send.stage, " sends ", Counted(from.bytes, "byte"), " of ",
                            DTypeName(from.dtype)));
  }
  Value value;
  if (!ReadTensor(send, 0, &value)) return;
  if (value.kind != ValueKind::kTensor) {
    return BadOperand(send, 0, "contents", "is no activation or gradient");
  }
  if (CheckMicrobatch(receive, value)) Write(receive, 0, value);
}

}  // namespace planc::verifying
