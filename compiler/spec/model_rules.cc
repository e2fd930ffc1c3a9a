#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/spec/nearest.h"
#include "compiler/spec/rule.h"

namespace planc {
namespace {

constexpr double kMostParameters = 1e15;

std::optional<Finding> KvHeadGroups(const Facts& facts) {
  const int64_t heads = facts.job.model().heads();
  const int64_t kv_heads = facts.job.model().kv_heads();
  if (heads % kv_heads == 0) return std::nullopt;
  return Finding{absl::StrCat("model.kv_heads ", kv_heads, " does not divide model.heads ", heads,
                              ": query heads share key and value heads in equal groups"),
                 "a model.kv_heads that divides model.heads",
                 Propose("model.kv_heads", NearestDivisors(heads, kv_heads))};
}

std::optional<Finding> HeadProduct(const Facts& facts) {
  const proto::Model& model = facts.job.model();
  const int64_t product = model.heads() * model.head_dim();
  if (IsRotary(model.family()) || product == model.hidden()) return std::nullopt;
  return Finding{absl::StrCat("heads ", model.heads(), " * head_dim ", model.head_dim(), " = ",
                              product, ", but this family requires hidden ", model.hidden()),
                 "leave head_dim out, or change heads or hidden",
                 model.hidden() % model.heads() == 0
                     ? Propose("model.head_dim", {model.hidden() / model.heads()})
                     : Propose("model.heads", NearestDivisors(model.hidden(), model.heads()))};
}

std::optional<Finding> OddHeadDim(const Facts& facts) {
  const proto::Model& model = facts.job.model();
  if (!IsRotary(model.family()) || model.head_dim() % 2 == 0) return std::nullopt;
  return Finding{absl::StrCat("model.head_dim is ", model.head_dim(),
                              ", but rotary embedding needs an even number"),
                 "an even model.head_dim",
                 Propose("model.head_dim", NearestMultiples(2, model.head_dim()))};
}

std::optional<Finding> ModelTooLarge(const Facts& facts) {
  // In floating point, because the sizes may leave 64 bits.
  const proto::Model& model = facts.job.model();
  const auto hidden = static_cast<double>(model.hidden());
  const auto attention =
      static_cast<double>(model.heads() + model.kv_heads()) * static_cast<double>(model.head_dim());
  const double layer = hidden * (2 * attention + 3 * static_cast<double>(model.ffn_hidden()));
  const double total = static_cast<double>(model.layers()) * layer +
                       hidden * static_cast<double>(2 * model.vocab() + model.max_sequence());
  if (total <= kMostParameters) return std::nullopt;
  return Finding{absl::StrFormat("the model has about %.3g parameters (layers %d, hidden %d, "
                                 "ffn_hidden %d, vocab %d); at most %.0g are supported",
                                 total, model.layers(), model.hidden(), model.ffn_hidden(),
                                 model.vocab(), kMostParameters),
                 "check the sizes; published models have at most some 1e12 parameters"};
}

std::optional<Finding> SequenceTooLong(const Facts& facts) {
  const int64_t sequence = facts.job.batch().sequence();
  const int64_t most = facts.job.model().max_sequence();
  if (sequence <= most) return std::nullopt;
  return Finding{
      absl::StrCat("batch.sequence ", sequence, " is longer than model.max_sequence ", most),
      "a shorter batch.sequence, or a larger model.max_sequence",
      {{{"batch.sequence", absl::StrCat(most)}}, {{"model.max_sequence", absl::StrCat(sequence)}}}};
}

}  // namespace

const std::vector<Rule>& ModelRules() {
  static const auto* const kRules = new std::vector<Rule>{
      {DiagnosticCode::kKvHeadGroups, {"model.kv_heads", "model.heads"}, KvHeadGroups},
      {DiagnosticCode::kHeadProduct,
       {"model.head_dim", "model.heads", "model.hidden", "model.family"},
       HeadProduct},
      {DiagnosticCode::kOddHeadDim,
       {"model.head_dim", "model.heads", "model.hidden", "model.family"},
       OddHeadDim},
      {DiagnosticCode::kModelTooLarge,
       {"model.layers", "model.hidden", "model.ffn_hidden", "model.vocab", "model.head_dim",
        "model.heads", "model.kv_heads", "model.max_sequence"},
       ModelTooLarge},
      {DiagnosticCode::kSequenceTooLong, {"batch.sequence", "model.max_sequence"}, SequenceTooLong},
  };
  return *kRules;
}

}  // namespace planc
