// The plan trains the model that its job names: the tensors of the family, and its function.
#include "schemas/verify_model.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "schemas/verify_report.h"
#include "schemas/verify_shapes.h"

namespace planc::verifying {
namespace {

const Parameter* FindParameter(const Plan& plan, const std::string& name) {
  for (const Parameter& parameter : plan.params) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

int64_t LocalElements(const Parameter& parameter) {
  int64_t product = 1;
  for (int64_t n : parameter.local_shape) product = Times(product, n);
  return product;
}

bool IsPerLayer(const std::string& name) { return name.find("{layer}") != std::string::npos; }

class ModelCheck {
 public:
  ModelCheck(const Plan& plan, Report& report)
      : plan_(plan), report_(report), family_(FamilyOf(plan.job.model())) {}

  void Run() {
    if (family_.parameters.empty()) return Bad("the model's family has no description");
    std::set<std::string> names;
    for (const Parameter& parameter : plan_.params) {
      if (!names.insert(parameter.name).second) {
        Bad(absl::StrCat("two parameters are named ", parameter.name));
      }
    }
    for (const FamilyParameter& wanted : family_.parameters) {
      const Parameter* const found = FindParameter(plan_, wanted.name);
      if (found == nullptr) {
        Bad(absl::StrCat("the model's parameter ", wanted.name, " is missing"));
      } else {
        Compare(*found, wanted);
      }
      names.erase(wanted.name);
    }
    for (const std::string& name : names) Bad(absl::StrCat("the model has no parameter ", name));
  }

 private:
  void Bad(const std::string& message) { report_.Add("model", message); }

  void Compare(const Parameter& found, const FamilyParameter& wanted) {
    const auto bad = [&](const char* what) {
      Bad(absl::StrCat("parameter ", found.name, " has another ", what, " than the model's"));
    };
    const double std = plan_.job.model().init_std();
    const double residual = std / std::sqrt(2.0 * static_cast<double>(plan_.job.model().layers()));
    const double deviation = wanted.initial == Initial::kNormal     ? std
                             : wanted.initial == Initial::kResidual ? residual
                                                                    : 0;
    if (found.shape != wanted.shape) bad("shape");
    if (found.tp_dim != (plan_.mesh[Axis::kTp] > 1 ? wanted.tp_dim : -1)) bad("split over tp");
    if (found.ones != (wanted.initial == Initial::kOnes) ||
        !(std::abs(found.init_std - deviation) <= 1e-12 * deviation)) {
      bad("initial value");
    }
    if (found.transposed != wanted.transposed) bad("transposition in files");
    if (plan_.units[found.unit].per_layer != IsPerLayer(wanted.name)) bad("number of layers");
  }

  const Plan& plan_;
  Report& report_;
  const Family family_;
};

}  // namespace

void CheckModel(const Plan& plan, Report& report) {
  if (plan.job.model().has_family()) ModelCheck(plan, report).Run();
}

struct ModelFormula::Walk {
  DefinitionTable& definitions;
  const ParameterTable& parameters;
  uint64_t rope_table;
  uint64_t at;  // hash of the tensor that the walk has reached
  std::string problem;

  bool Fails(const std::string& text) {
    problem = text;
    return false;
  }
};

ModelFormula::ModelFormula(const Plan& plan) : plan_(plan), known_(plan.job.model().has_family()) {
  if (!known_) return;
  const Family family = FamilyOf(plan.job.model());
  layers_ = static_cast<int>(plan.job.model().layers());
  embedding_ = Resolve(family.embedding);
  attention_ = Resolve(family.attention);
  mlp_ = Resolve(family.mlp);
  head_ = Resolve(family.head);
}

// The range of the parameters one after another; no unit when they do not lie so.
ModelFormula::Weight ModelFormula::Find(const std::vector<std::string>& names) const {
  Weight weight;
  for (const std::string& name : names) {
    const Parameter* const parameter = FindParameter(plan_, name);
    if (parameter == nullptr) return {};
    if (weight.unit < 0) {
      weight.unit = parameter->unit;
      weight.first_element = parameter->unit_offset;
    }
    if (parameter->unit != weight.unit ||
        parameter->unit_offset != weight.first_element + weight.elements) {
      return {};
    }
    weight.elements += LocalElements(*parameter);
  }
  return weight;
}

std::vector<ModelFormula::Step> ModelFormula::Resolve(const std::vector<FamilyStep>& steps) const {
  std::vector<Step> resolved;
  for (const FamilyStep& step : steps) {
    resolved.push_back({step.opcode, {Find(step.weights[0]), Find(step.weights[1])}});
  }
  return resolved;
}

// Follows `steps` from their result back to what they were computed from.
bool ModelFormula::Back(const std::vector<Step>& steps, int layer, Walk& walk) const {
  for (size_t i = steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    const Definition* definition = walk.definitions.Find(walk.at);
    // Rows of a tensor are what the model computes when the whole tensor is.
    if (definition != nullptr && definition->rows != 0) {
      definition = walk.definitions.Find(definition->inputs[0]);
    }
    const char* const wanted = TraitsOf(step.opcode).text.c_str();
    if (definition == nullptr || definition->opcode != step.opcode) {
      return walk.Fails(absl::StrCat(
          "computes ", definition == nullptr ? "nothing known" : TraitsOf(definition->opcode).text,
          " where the model has ", wanted));
    }
    for (size_t w = 0; w < step.weights.size(); ++w) {
      const WeightUse& use = definition->weights[w];
      if ((use.range < 0) != (step.weights[w].unit < 0)) {
        return walk.Fails(absl::StrCat(wanted, " takes other weights than the model's"));
      }
      if (use.range < 0) continue;
      const WeightRange& range = walk.parameters.At(use.range);
      if (range.unit != step.weights[w].unit ||
          range.first_element != step.weights[w].first_element ||
          range.elements != step.weights[w].elements ||
          use.layer != (plan_.units[range.unit].per_layer ? layer : -1)) {
        return walk.Fails(absl::StrCat(wanted, " takes other weights than the model's"));
      }
    }
    if (step.opcode == Opcode::kMatmul && !definition->transpose_b) {
      return walk.Fails("multiplies by the transpose of a weight");
    }
    if (step.opcode == Opcode::kRopeForward && definition->inputs[1] != walk.rope_table) {
      return walk.Fails("rotates by something else than the table");
    }
    walk.at = definition->inputs[0];
  }
  return true;
}

// x = y + branch(y), back to y.
bool ModelFormula::BackThroughBranch(const std::vector<Step>& steps, int layer, Walk& walk) const {
  const Definition* const sum = walk.definitions.Find(walk.at);
  if (sum == nullptr || sum->opcode != Opcode::kAdd) {
    return walk.Fails(absl::StrCat("layer ", layer, " lacks a residual connection"));
  }
  const uint64_t residual = sum->inputs[0];
  walk.at = sum->inputs[1];
  if (!Back(steps, layer, walk)) return false;
  if (walk.at == residual) return true;
  return walk.Fails(
      absl::StrCat("layer ", layer, " adds a branch to another tensor than it was computed from"));
}

std::string ModelFormula::Differs(uint64_t logits, DefinitionTable& definitions,
                                  const ParameterTable& parameters, uint64_t rope_table) const {
  if (!known_) return "";
  Walk walk{definitions, parameters, rope_table, logits, ""};
  bool same = Back(head_, -1, walk);
  for (int layer = layers_ - 1; layer >= 0 && same; --layer) {
    same = BackThroughBranch(mlp_, layer, walk) && BackThroughBranch(attention_, layer, walk);
  }
  if (same && Back(embedding_, -1, walk)) {
    const Definition* const tokens = definitions.Find(walk.at);
    if (tokens == nullptr || tokens->opcode != Opcode::kLoadTokens) {
      return "begins with something else than tokens";
    }
  }
  return walk.problem;
}

}  // namespace planc::verifying
