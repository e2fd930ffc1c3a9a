#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/nearest.h"
#include "compiler/spec/rule.h"

namespace planc {
namespace {

constexpr int64_t kLargestWorld = int64_t{1} << 20;

// Five axes of at most 2^20 each leave 64 bits; such products are reported as the largest number.
int64_t Saturate(__int128 value) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return value > kMost ? kMost : static_cast<int64_t>(value);
}

// Values of single axes that make the product fit, for the axes given in the job, tp last because
// it is bound by the model.
std::string AxisProposals(const std::vector<std::pair<std::string, int64_t>>& axes,
                          __int128 product, int64_t world) {
  std::vector<std::string> proposals;
  for (const auto& [name, size] : axes) {
    const __int128 others = product / size;
    if (others > world || world % static_cast<int64_t>(others) != 0) continue;
    const int64_t value = world / static_cast<int64_t>(others);
    if (value != size) proposals.push_back(absl::StrCat("mesh.", name, ": ", value));
  }
  return absl::StrJoin(proposals, ", or ");
}

std::optional<Finding> WorldProduct(const Facts& facts) {
  const proto::Mesh& mesh = facts.job.mesh();
  const std::vector<std::pair<std::string, int64_t>> axes = {{"dp_shard", mesh.dp_shard()},
                                                             {"dp_replicate", mesh.dp_replicate()},
                                                             {"pp", mesh.pp()},
                                                             {"cp", mesh.cp()},
                                                             {"tp", mesh.tp()}};
  __int128 product = 1;
  for (const auto& axis : axes) product *= axis.second;
  if (product == facts.world) return std::nullopt;
  Finding finding;
  finding.message = absl::StrCat(
      "the mesh does not fill the cluster: pp ", mesh.pp(), " * dp_replicate ", mesh.dp_replicate(),
      " * dp_shard ", mesh.dp_shard(), " * cp ", mesh.cp(), " * tp ", mesh.tp(), " = ",
      Saturate(product), ", but nodes ", facts.job.cluster().nodes(), " * gpus_per_node ",
      facts.job.cluster().gpus_per_node(), " = ", facts.world);
  finding.fix = AxisProposals(axes, product, facts.world);
  if (finding.fix.empty()) finding.fix = "set mesh.dp_shard: auto and choose tp and pp that divide";
  return finding;
}

std::optional<Finding> WorldTooLarge(const Facts& facts) {
  if (facts.world <= kLargestWorld) return std::nullopt;
  return Finding{
      absl::StrCat("the cluster has nodes ", facts.job.cluster().nodes(), " * gpus_per_node ",
                   facts.job.cluster().gpus_per_node(), " = ", facts.world, " ranks; at most ",
                   kLargestWorld, " are supported"),
      absl::StrCat("at most ", kLargestWorld / facts.job.cluster().gpus_per_node(), " nodes")};
}

// The rule that mesh.tp divides `size`, a key called `name`. Proposes values that satisfy all rules
// of tensor parallelism.
std::optional<Finding> TensorDivides(const Facts& facts, const char* name, int64_t size) {
  const int64_t tp = facts.job.mesh().tp();
  if (size % tp == 0) return std::nullopt;
  const proto::Model& model = facts.job.model();
  const int64_t common = std::gcd(std::gcd(model.heads(), model.kv_heads()),
                                  std::gcd(model.ffn_hidden(), facts.world));
  return Finding{absl::StrCat("mesh.tp ", tp, " does not divide model.", name, " ", size, ": ",
                              size, " / ", tp, " leaves ", size % tp),
                 absl::StrCat("mesh.tp: ", NearestDivisors(common, tp))};
}

std::optional<Finding> TensorHeads(const Facts& facts) {
  return TensorDivides(facts, "heads", facts.job.model().heads());
}

std::optional<Finding> TensorKvHeads(const Facts& facts) {
  // Then TensorHeads has said it.
  if (facts.job.model().kv_heads() == facts.job.model().heads()) return std::nullopt;
  return TensorDivides(facts, "kv_heads", facts.job.model().kv_heads());
}

std::optional<Finding> TensorFfn(const Facts& facts) {
  std::optional<Finding> finding =
      TensorDivides(facts, "ffn_hidden", facts.job.model().ffn_hidden());
  if (finding.has_value()) {
    absl::StrAppend(&finding->fix, "; or model.ffn_hidden: ",
                    NearestMultiples(facts.job.mesh().tp(), facts.job.model().ffn_hidden()));
  }
  return finding;
}

std::optional<Finding> SequenceShards(const Facts& facts) {
  const int64_t tp = facts.job.mesh().tp();
  const proto::Batch& batch = facts.job.batch();
  const int64_t tokens = batch.micro() * batch.sequence();
  if (!facts.job.parallelism().sequence_parallel() || tokens % tp == 0) return std::nullopt;
  return Finding{
      absl::StrCat("with sequence_parallel, mesh.tp ", tp, " must divide the tokens of a ",
                   "microbatch: micro ", batch.micro(), " * sequence ", batch.sequence(), " = ",
                   tokens, ", which leaves ", tokens % tp),
      absl::StrCat("batch.sequence: ", NearestMultiples(tp, batch.sequence()))};
}

std::optional<Finding> SequenceParallelNoEffect(const Facts& facts) {
  if (!facts.job.parallelism().sequence_parallel() || facts.job.mesh().tp() > 1) {
    return std::nullopt;
  }
  return Finding{"parallelism.sequence_parallel has no effect with mesh.tp 1",
                 "remove it, or set mesh.tp above 1"};
}

std::optional<Finding> ZeroNoEffect(const Facts& facts) {
  const proto::Parallelism& parallelism = facts.job.parallelism();
  const bool wanted = parallelism.zero() > 1 && facts.IsWritten("parallelism.zero");
  if (!wanted || facts.job.mesh().dp_shard() > 1) return std::nullopt;
  return Finding{
      absl::StrCat("parallelism.zero ", parallelism.zero(), " has no effect with mesh.dp_shard 1"),
      "move ranks from dp_replicate to dp_shard"};
}

}  // namespace

const std::vector<Rule>& MeshRules() {
  static const auto* const kRules = new std::vector<Rule>{
      {DiagnosticCode::kWorldProduct,
       {"mesh.dp_shard", "mesh.tp", "mesh.pp", "mesh.dp_replicate", "mesh.cp", "cluster.nodes",
        "cluster.gpus_per_node"},
       WorldProduct,
       /*doubts=*/{"mesh.dp_shard", "mesh.dp_replicate"}},
      {DiagnosticCode::kWorldTooLarge,
       {"cluster.nodes", "cluster.gpus_per_node"},
       WorldTooLarge,
       /*doubts=*/{"mesh.dp_shard", "mesh.dp_replicate"}},
      {DiagnosticCode::kTensorHeads, {"mesh.tp", "model.heads"}, TensorHeads},
      {DiagnosticCode::kTensorKvHeads, {"mesh.tp", "model.kv_heads"}, TensorKvHeads},
      {DiagnosticCode::kTensorFfn, {"mesh.tp", "model.ffn_hidden"}, TensorFfn},
      {DiagnosticCode::kSequenceShards,
       {"batch.sequence", "batch.micro", "mesh.tp", "parallelism.sequence_parallel"},
       SequenceShards},
      {DiagnosticCode::kSequenceParallelNoEffect,
       {"parallelism.sequence_parallel", "mesh.tp"},
       SequenceParallelNoEffect},
      {DiagnosticCode::kZeroNoEffect, {"parallelism.zero", "mesh.dp_shard"}, ZeroNoEffect},
  };
  return *kRules;
}

}  // namespace planc
