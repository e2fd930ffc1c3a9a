// The frame of symbolic execution: operands, layouts, and which rule an opcode follows.
#include "schemas/verify_execute.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planc::verifying {

Executor::Executor(const FlatPlan& flat, Report& report)
    : flat_(flat),
      plan_(*flat.plan),
      report_(report),
      parameters_(*flat.plan),
      formula_(*flat.plan) {
  layers_ = 0;
  for (const RankClass& rank_class : plan_.classes) {
    for (int layer : rank_class.layers) layers_ = std::max<int64_t>(layers_, layer + 1);
  }
  memories_.reserve(plan_.classes.size());
  for (const RankClass& rank_class : plan_.classes) {
    memories_.emplace_back(flat, rank_class, store_);
    std::vector<int> slots(layers_, -1);
    for (size_t i = 0; i < rank_class.layers.size(); ++i) {
      slots[rank_class.layers[i]] = static_cast<int>(i);
    }
    layer_slots_.push_back(std::move(slots));
    std::vector<std::vector<UnitState>> states;
    for (const planc::Unit& unit : plan_.units) {
      const bool held = rank_class.pool_slots[plan_.buffers[unit.master].pool] > 0;
      states.emplace_back(!held ? 0 : unit.per_layer ? rank_class.layers.size() : 1);
    }
    units_.push_back(std::move(states));
  }
  holders_.assign(plan_.units.size(), 0);
  for (const auto& stage : units_) {
    for (size_t u = 0; u < stage.size(); ++u) holders_[u] += stage[u].empty() ? 0 : 1;
  }
  for (const planc::Unit& unit : plan_.units) {
    contributions_.emplace_back(unit.per_layer ? layers_ : 1);
  }
  range_cache_.assign(flat.operands.size(), -1);
  for (Axis axis : kAllAxes) {
    if (axis != Axis::kPp && plan_.mesh[axis] > 1) axes_.push_back(axis);
  }
}

std::string Executor::Text(const Site& site) const {
  const FlatCall& call = *site.call;
  std::string text = absl::StrCat("stage ", site.stage, ", ", ProgramName(program_), ", ",
                                  plan_.blocks[call.block].name);
  if (call.layer >= 0) absl::StrAppend(&text, " layer=", call.layer);
  if (call.microbatch >= 0) absl::StrAppend(&text, " microbatch=", call.microbatch);
  absl::StrAppend(&text, ", instruction ", site.instruction->index, " ",
                  TraitsOf(site.instruction->opcode).text);
  return text;
}

void Executor::Bad(const Site& site, const char* rule, const std::string& message) {
  if (!report_.full()) report_.Add(rule, absl::StrCat(Text(site), ": ", message));
}

void Executor::BadOperand(const Site& site, int k, const char* rule, const std::string& message) {
  if (!report_.ok()) return;
  const std::string& name = TraitsOf(site.instruction->opcode).operands[k].name;
  Bad(site, rule, absl::StrCat("operand ", name, " (buffer ", BufferName(site, k), ") ", message));
}

const std::string& Executor::BufferName(const Site& site, int k) const {
  return plan_.buffers[site.operands[k].buffer].name;
}

bool Executor::CheckDeclared(const Site& site, int k, const AxisCodes& layout) {
  const AxisCodes& declared = site.operands[k].declared;
  for (int a = 0; a < kAxisCount; ++a) {
    if (declared[a] == layout[a] || (layout[a] == kAsUnit && declared[a] == kRows)) continue;
    BadOperand(site, k, "layout",
               absl::StrCat("is declared ", CodeText(declared[a]), " on axis ",
                            AxisName(static_cast<Axis>(a)), " but is ", CodeText(layout[a])));
    return false;
  }
  return true;
}

void Executor::Touch(const Site& site, int k) {
  const FlatOperand& operand = site.operands[k];
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  const int count = operand.last_cell - operand.first_cell;
  ++report_.certificate().order_checks;
  if (!site.memory->Read(site.instruction->stream, first, count)) {
    BadOperand(site, k, "order",
               absl::StrCat("is read before stream ",
                            StreamName(static_cast<Stream>(site.memory->conflict())),
                            " is known to have written it"));
  }
}

const Value& Executor::ValueOf(const Site& site, int k) const {
  return store_[site.memory->ValueAt(site.memory->CellOf(site.operands[k], site.call->slots))];
}

bool Executor::IsZero(const Site& site, int k) const {
  const FlatOperand& operand = site.operands[k];
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  for (int64_t c = first; c < first + operand.last_cell - operand.first_cell; ++c) {
    if (site.memory->ValueAt(c) != ValueStore::kZeroIndex) return false;
  }
  return true;
}

// Operand k as one tensor: the value that covers it exactly, as it was written, rows of a value, or
// a gradient that was written in rows.
bool Executor::ReadTensor(const Site& site, int k, Value* value) {
  const FlatOperand& operand = site.operands[k];
  Touch(site, k);
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  const int count = operand.last_cell - operand.first_cell;
  const int index = site.memory->ValueAt(first);
  bool whole = true;
  for (int64_t c = first + 1; c < first + count; ++c) {
    whole = whole && site.memory->ValueAt(c) == index;
  }
  const Value& found = store_[index];
  if (index == ValueStore::kNoneIndex) {
    BadOperand(site, k, "uninitialised", "is read but was never written");
    return false;
  }
  if (whole && found.begin == operand.begin && found.end == operand.end &&
      found.dtype == operand.dtype && found.tile == operand.tile &&
      (found.kind == ValueKind::kTensor || found.kind == ValueKind::kScalar)) {
    *value = found;
  } else if (!(whole ? TakeRows(site, k, found, value) : JoinRows(site, k, value))) {
    BadOperand(site, k, "contents", "does not hold one whole tensor of its type");
    return false;
  }
  if (!CheckDeclared(site, k, value->layout)) return false;
  if (value->kind == ValueKind::kScalar) return true;
  if (!CheckRows(site, k, *value)) return false;
  const bool flat = site.instruction->opcode == Opcode::kAdd ||
                    site.instruction->opcode == Opcode::kAccumulate ||
                    site.instruction->kind != OpcodeKind::kCompute;
  if (!flat && (value->rows != operand.rows || value->columns != operand.columns)) {
    BadOperand(site, k, "contents",
               absl::StrCat("holds ", value->rows, " x ", value->columns, ", the operation takes ",
                            operand.rows, " x ", operand.columns));
    return false;
  }
  return CheckMicrobatch(site, *value);
}

bool Executor::ReadScalar(const Site& site, int k, ValueRole role, bool may_be_zero, Value* value) {
  if (may_be_zero && IsZero(site, k)) {
    Touch(site, k);
    *value = Value();
    value->kind = ValueKind::kZero;
    value->layout.fill(kAnyLayout);
    return true;
  }
  if (!ReadTensor(site, k, value)) return false;
  if (value->kind == ValueKind::kScalar && value->role == role) return true;
  BadOperand(site, k, "contents", "is not the scalar that the operation takes");
  return false;
}

void Executor::Write(const Site& site, int k, Value value) {
  const FlatOperand& operand = site.operands[k];
  value.begin = operand.begin;
  value.end = operand.end;
  value.tile = operand.tile;
  value.stride = operand.stride;
  value.dtype = operand.dtype;
  if (value.kind == ValueKind::kTensor && value.tile) {
    return BadOperand(site, k, "contents", "moves with dp_shard, but is no part of a flat unit");
  }
  // All-reduce leaves another layout in place than its operand is declared to have before it.
  if (value.kind != ValueKind::kGradient && site.instruction->opcode != Opcode::kAllReduce &&
      !CheckDeclared(site, k, value.layout)) {
    return;
  }
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  ++report_.certificate().order_checks;
  if (!site.memory->Write(site.instruction->stream, first, operand.last_cell - operand.first_cell,
                          store_.Add(value))) {
    BadOperand(site, k, "order",
               absl::StrCat("is written before stream ",
                            StreamName(static_cast<Stream>(site.memory->conflict())),
                            " is known to be done with it"));
  }
}

void Executor::WriteZero(const Site& site, int k) {
  const FlatOperand& operand = site.operands[k];
  if (operand.tile) return BadOperand(site, k, "contents", "zeroes one shard only");
  const int64_t first = site.memory->CellOf(operand, site.call->slots);
  ++report_.certificate().order_checks;
  if (!site.memory->Write(site.instruction->stream, first, operand.last_cell - operand.first_cell,
                          ValueStore::kZeroIndex)) {
    BadOperand(site, k, "order", "is zeroed while another stream may still use it");
  }
}

void Executor::WriteScratch(const Site& site) {
  for (int k = 0; k < site.instruction->operand_count; ++k) {
    const FlatOperand& operand = site.operands[k];
    if (!operand.scratch) continue;
    const int64_t first = site.memory->CellOf(operand, site.call->slots);
    ++report_.certificate().order_checks;
    if (!site.memory->Write(site.instruction->stream, first, operand.last_cell - operand.first_cell,
                            ValueStore::kScratchIndex)) {
      BadOperand(site, k, "order", "is scratch that another stream may still use");
    }
  }
}

// Sets codes_ to the layouts of the written operands; values are those of read and updated
// operands.
bool Executor::ApplyLayouts(const Site& site, const Values& values) {
  for (AxisCodes& codes : codes_) codes.fill(kReplicated);
  for (Axis axis : axes_) {
    const int a = static_cast<int>(axis);
    AxisCase c{*site.instruction, axis, {}, {}};
    for (int k = 0; k < site.instruction->operand_count; ++k) {
      c.in[k] = values[k] == nullptr ? uint8_t{kAnyLayout} : values[k]->layout[a];
    }
    if (!ApplyAxisRule(c)) {
      if (report_.full()) return false;
      std::string text;
      for (int k = 0; k < site.instruction->operand_count; ++k) {
        if (values[k] == nullptr) continue;
        absl::StrAppend(&text, text.empty() ? "" : ", ",
                        TraitsOf(site.instruction->opcode).operands[k].name, " (",
                        BufferName(site, k), ") is ", CodeText(values[k]->layout[a]));
      }
      Bad(site, "layout", absl::StrCat("does not fit on axis ", AxisName(axis), ": ", text));
      return false;
    }
    for (int k = 0; k < site.instruction->operand_count; ++k) codes_[k][a] = c.out[k];
  }
  return true;
}

void Executor::CheckAliases(const Site& site) {
  for (const auto& [a, b] : site.instruction->aliases) {
    const FlatOperand& x = site.operands[a];
    const FlatOperand& y = site.operands[b];
    if (site.call->slots[x.binding] != site.call->slots[y.binding]) continue;
    Bad(site, "overlap",
        absl::StrCat("operands ", BufferName(site, a), " and ", BufferName(site, b),
                     " share memory"));
  }
}

// Recomputation is left out of the model's FLOPs that are reported: its label is on what computes
// something again and on no other work of a step.
void Executor::CheckLabel(const Site& site) {
  const bool labelled = site.instruction->source->label == Label::kRecompute;
  if (program_ != ProgramKind::kStep || repeats_ == labelled) return;
  if (repeats_) {
    Bad(site, "training", "computes again what was computed, but is not labelled recompute");
  } else if (site.instruction->source->cost.flops > 0) {
    Bad(site, "training", "is labelled recompute, but nothing is computed again");
  }
}

void Executor::Execute(const Site& site) {
  if (!report_.ok()) return;
  if (!site.instruction->aliases.empty()) CheckAliases(site);
  repeats_ = false;
  switch (site.instruction->opcode) {
    case Opcode::kEmbeddingForward:
    case Opcode::kPositionForward:
    case Opcode::kRmsNormForward:
    case Opcode::kLayerNormForward:
    case Opcode::kHeadNormForward:
    case Opcode::kBiasForward:
    case Opcode::kRopeForward:
    case Opcode::kAttentionForward:
    case Opcode::kSwigluForward:
    case Opcode::kGeluForward:
    case Opcode::kLossMax:
    case Opcode::kLossSumExp:
      Forward(site);
      break;
    case Opcode::kLossGradient:
    case Opcode::kLossForward:
      Loss(site);
      break;
    case Opcode::kLoadTokens:
    case Opcode::kLoadTargets:
    case Opcode::kRopeTable:
      LoadData(site);
      break;
    case Opcode::kZero:
      WriteZero(site, 0);
      break;
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
      Collective(site);
      break;
    case Opcode::kCast:
    case Opcode::kAccumulate:
    case Opcode::kSumSquares:
    case Opcode::kClipCoefficient:
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
    case Opcode::kInitParameters:
      Unit(site);
      break;
    case Opcode::kSend:
    case Opcode::kRecv:
      break;  // in pairs, by ExecuteTransfer
    default:
      Backward(site);
      break;
  }
  WriteScratch(site);
  CheckLabel(site);
}

}  // namespace planc::verifying
