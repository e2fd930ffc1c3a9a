// Symbolic execution of the forward pass: every result is named by a hash of the operation and its
// inputs, so that a tensor computed again is the same tensor.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {
namespace {

// Which operands of a forward operation are tensors, weights and results; -1 for none.
struct Form {
  int tensors[3];
  int weights[2];
  int results[3];
  bool differentiable;  // its gradient flows back into the first tensor
};

Form FormOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kEmbeddingForward:
      return {{0, -1, -1}, {1, -1}, {2, -1, -1}, true};
    case Opcode::kPositionForward:
    case Opcode::kBiasForward:
      return {{0, -1, -1}, {1, -1}, {0, -1, -1}, true};
    case Opcode::kRmsNormForward:
      return {{0, -1, -1}, {1, -1}, {2, 3, -1}, true};
    case Opcode::kLayerNormForward:
      return {{0, -1, -1}, {1, 2}, {3, 4, 5}, true};
    case Opcode::kHeadNormForward:
      return {{0, -1, -1}, {1, 2}, {3, 4, -1}, true};
    case Opcode::kRopeForward:
      return {{0, 1, -1}, {-1, -1}, {0, -1, -1}, true};
    case Opcode::kAttentionForward:
      return {{0, -1, -1}, {-1, -1}, {1, 2, -1}, true};
    case Opcode::kLossMax:
      return {{0, -1, -1}, {-1, -1}, {1, -1, -1}, false};
    case Opcode::kLossSumExp:
      return {{0, 1, 2}, {-1, -1}, {3, -1, -1}, false};
    default:  // SwiGLU and GELU
      return {{0, -1, -1}, {-1, -1}, {1, -1, -1}, true};
  }
}

}  // namespace

bool Executor::CheckMicrobatch(const Site& site, const Value& value) {
  if (value.microbatch < 0 || site.call->microbatch < 0 ||
      value.microbatch == site.call->microbatch) {
    return true;
  }
  Bad(site, "contents",
      absl::StrCat("works on microbatch ", value.microbatch, " in a call for ",
                   site.call->microbatch));
  return false;
}

// A tensor computed from `values`: their microbatch, rows and depth.
Value Executor::Derive(const Site& site, const Value* values, int count) {
  Value result;
  result.kind = ValueKind::kTensor;
  for (int i = 0; i < count; ++i) {
    if (values[i].microbatch >= 0) {
      if (result.microbatch >= 0 && result.microbatch != values[i].microbatch) {
        Bad(site, "contents",
            absl::StrCat("mixes microbatches ", result.microbatch, " and ", values[i].microbatch));
      }
      result.microbatch = values[i].microbatch;
    }
    result.depth = std::max(result.depth, values[i].depth);
    if (values[i].first_row != values[0].first_row || values[i].all_rows != values[0].all_rows) {
      Bad(site, "contents", "mixes different rows of tensors");
    }
  }
  result.first_row = values[0].first_row;
  result.all_rows = values[0].all_rows;
  return result;
}

// Notes how a tensor is computed, unless it is computed again.
bool Executor::Define(const Definition& definition) {
  if (!definitions_.Add(definition)) {
    ++(definition.opcode == Opcode::kMatmul ? repeated_products_ : repeated_others_);
    repeats_ = true;
    return false;
  }
  const bool sum = definition.opcode == Opcode::kAdd;
  for (int i = 0; i < (sum ? 2 : 1); ++i) {
    Definition* input = definitions_.Find(definition.inputs[i]);
    if (input != nullptr) ++input->uses;
  }
  for (size_t w = 0; w < definition.weights.size(); ++w) {
    const WeightUse& use = definition.weights[w];
    if (use.range < 0) continue;
    Contributions& expected = ContributionsTo(parameters_.At(use.range).unit, use.layer);
    ++expected.count;
    expected.sum += UseHash(definition, static_cast<int>(w));
  }
  return true;
}

// What is normalized is split over tp exactly when the job asks for sequence parallelism.
void Executor::CheckSequence(const Site& site, const Value& normalized) {
  if (!plan_.job.has_parallelism() || plan_.mesh[Axis::kTp] == 1) return;
  const bool split = normalized.layout[static_cast<int>(Axis::kTp)] == kRows;
  if (split == plan_.job.parallelism().sequence_parallel()) return;
  BadOperand(site, 0, "training",
             absl::StrCat(split ? "is" : "is not",
                          " split over tp, which is not the job's sequence_parallel"));
}

Executor::Contributions& Executor::ContributionsTo(int unit, int layer) {
  return contributions_[unit][std::max(layer, 0)];
}

void Executor::Forward(const Site& site) {
  const FlatInstruction& instruction = *site.instruction;
  const Form form = FormOf(instruction.opcode);
  Value tensors[3], weights[2];
  Values values{};
  Definition definition;
  definition.opcode = instruction.opcode;
  definition.hash = instruction.identity;
  int count = 0;
  for (; count < 3 && form.tensors[count] >= 0; ++count) {
    Value& tensor = tensors[count];
    if (!ReadTensor(site, form.tensors[count], &tensor)) return;
    if (tensor.adjoint != 0 || tensor.kind != ValueKind::kTensor) {
      return BadOperand(site, form.tensors[count], "contents", "is no value of the forward pass");
    }
    definition.inputs[count] = tensor.hash;
    definition.hash = Mix(definition.hash, tensor.hash);
    values[form.tensors[count]] = &tensor;
  }
  if (instruction.opcode == Opcode::kEmbeddingForward) {
    const Definition* source = definitions_.Find(tensors[0].hash);
    if (source == nullptr || source->opcode != Opcode::kLoadTokens) {
      return BadOperand(site, 0, "contents", "is no loaded tokens");
    }
  }
  Value result = Derive(site, tensors, count);
  for (int w = 0; w < 2 && form.weights[w] >= 0; ++w) {
    if (!ReadWeight(site, form.weights[w], &weights[w], &definition.weights[w])) return;
    definition.hash = Mix(definition.hash, weights[w].hash);
    values[form.weights[w]] = &weights[w];
    const int layer = definition.weights[w].layer;
    if (layer < 0) continue;
    if (result.depth != layer && result.depth != layer - 1) {
      return Bad(site, "training",
                 absl::StrCat("applies layer ", layer, " to the output of layer ", result.depth));
    }
    result.depth = layer;
  }
  if (!ApplyLayouts(site, values)) return;
  if (instruction.opcode == Opcode::kRmsNormForward ||
      instruction.opcode == Opcode::kLayerNormForward) {
    CheckSequence(site, tensors[0]);
  }
  if (form.differentiable) {
    if (Define(definition) && instruction.opcode == Opcode::kAttentionForward) {
      InFlight& layers = in_flight_[site.stage];
      layers.most = std::max(layers.most, ++layers.now);
    }
  } else {
    definitions_.Add(definition);
  }
  for (int r = 0; r < 3 && form.results[r] >= 0; ++r) {
    const int k = form.results[r];
    result.hash = r == 0 ? definition.hash : Mix(definition.hash, static_cast<uint64_t>(r));
    result.layout = codes_[k];
    result.rows = site.operands[k].rows;
    result.columns = site.operands[k].columns;
    Write(site, k, result);
  }
}

void Executor::LoadData(const Site& site) {
  const FlatInstruction& instruction = *site.instruction;
  Value value;
  value.kind = ValueKind::kTensor;
  value.rows = site.operands[0].rows;
  value.columns = site.operands[0].columns;
  value.hash = instruction.identity;
  if (instruction.opcode == Opcode::kRopeTable) {
    rope_table_ = value.hash;
  } else {
    if (site.call->microbatch < 0) return Bad(site, "training", "loads data of no microbatch");
    value.microbatch = site.call->microbatch;
    value.hash = Mix(value.hash, static_cast<uint64_t>(site.call->microbatch));
    for (Axis axis : {Axis::kDpReplicate, Axis::kDpShard}) {
      if (plan_.mesh[axis] > 1) value.layout[static_cast<int>(axis)] = kRows;
    }
    Definition source;
    source.hash = value.hash;
    source.opcode = instruction.opcode;
    definitions_.Add(source);
  }
  Write(site, 0, value);
}

// loss += ..., and with LossGradient the logits become the gradient of the loss to them.
void Executor::Loss(const Site& site) {
  const bool training = site.instruction->opcode == Opcode::kLossGradient;
  const int loss_at = training ? 4 : 3;
  Value max, pair, targets, logits, loss;
  if (!ReadTensor(site, 0, &max) || !ReadTensor(site, 1, &pair) || !ReadTensor(site, 2, &targets) ||
      !ReadScalar(site, loss_at, ValueRole::kLoss, true, &loss)) {
    return;
  }
  Values values{&max, &pair, &targets};
  if (training) {
    if (!ReadTensor(site, 3, &logits)) return;
    values[3] = &logits;
  }
  values[loss_at] = &loss;
  const Definition* sums = definitions_.Find(pair.hash);
  const Definition* maxima = definitions_.Find(max.hash);
  if (sums == nullptr || sums->opcode != Opcode::kLossSumExp || maxima == nullptr ||
      maxima->opcode != Opcode::kLossMax || sums->inputs[1] != max.hash ||
      sums->inputs[2] != targets.hash || sums->inputs[0] != maxima->inputs[0] ||
      (training && sums->inputs[0] != logits.hash)) {
    return Bad(site, "contents", "maximum, sums and targets are not of the same logits");
  }
  const Definition* source = definitions_.Find(targets.hash);
  if (source != nullptr && source->rows != 0) source = definitions_.Find(source->inputs[0]);
  if (source == nullptr || source->opcode != Opcode::kLoadTargets) {
    return Bad(site, "contents", "the targets are not loaded targets");
  }
  if (pair.depth != layers_ - 1) {
    return Bad(site, "training",
               absl::StrCat("the loss follows layer ", pair.depth, " of ", layers_));
  }
  const std::string differs =
      formula_.Differs(sums->inputs[0], definitions_, parameters_, rope_table_);
  if (!differs.empty())
    return Bad(site, "model", absl::StrCat("the loss is not the model's: it ", differs));
  if (!ApplyLayouts(site, values)) return;
  if (training) {
    Definition* of_logits = definitions_.Find(logits.hash);
    if (of_logits != nullptr) ++of_logits->uses;
    Value gradient = logits;
    gradient.adjoint = logits.hash;
    gradient.hash = Mix(site.instruction->identity, pair.hash);
    gradient.terms = 1;
    gradient.layout = codes_[3];
    Write(site, 3, gradient);
  }
  const bool stages = plan_.mesh[Axis::kPp] > 1;
  if (loss.kind == ValueKind::kScalar && stages && loss.layout[0] != kPartialSum) {
    return BadOperand(site, loss_at, "layout", "was already summed over the stages");
  }
  loss.kind = ValueKind::kScalar;
  loss.role = ValueRole::kLoss;
  loss.layout = codes_[loss_at];
  loss.layout[0] = stages ? kPartialSum : kReplicated;
  loss.count += RowsCount(pair);
  loss.contributions += RowsContribution(pair, Mix(1, static_cast<uint64_t>(pair.microbatch + 1)));
  loss.microbatch = -1;
  loss_function_ += Mix(4, pair.hash);
  Write(site, loss_at, loss);
}

}  // namespace planc::verifying
