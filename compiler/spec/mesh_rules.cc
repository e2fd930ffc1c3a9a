#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/spec/nearest.h"
#include "compiler/spec/rule.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr int64_t kLargestWorld = int64_t{1} << 20;

// Five axes of at most 2^20 each leave 64 bits; such products are reported as the largest number.
int64_t Saturate(__int128 value) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return value > kMost ? kMost : static_cast<int64_t>(value);
}

using Axes = std::vector<std::pair<std::string, int64_t>>;

// The axes that may change, dp_shard first; tp last, because it is bound by the model.
Axes AxesOf(const proto::Mesh& mesh) {
  return {{"mesh.dp_shard", mesh.dp_shard()},
          {"mesh.dp_replicate", mesh.dp_replicate()},
          {"mesh.pp", mesh.pp()},
          {"mesh.tp", mesh.tp()}};
}

// Sizes of one axis, then of two, that make the product fill `world`: the smallest changes first.
std::vector<Proposal> FillWorld(const proto::Mesh& mesh, int64_t world) {
  const Axes axes = AxesOf(mesh);
  __int128 product = mesh.cp();
  for (const auto& axis : axes) product *= axis.second;
  std::vector<Proposal> proposals;
  for (const auto& [name, size] : axes) {
    const __int128 others = product / size;
    if (others > world || world % static_cast<int64_t>(others) != 0) continue;
    const int64_t value = world / static_cast<int64_t>(others);
    if (value != size) proposals.push_back({{name, absl::StrCat(value)}});
  }
  for (size_t a = axes.size(); a-- > 0;) {
    for (size_t b = 0; b < a; ++b) {
      const __int128 others = product / axes[a].second / axes[b].second;
      if (others > world || world % static_cast<int64_t>(others) != 0) continue;
      const int64_t both = world / static_cast<int64_t>(others);
      for (const int64_t size : DivisorsByDistance(both, axes[a].second)) {
        const int64_t rest = both / size;
        if (size == axes[a].second || rest == axes[b].second) continue;
        proposals.push_back(
            {{axes[a].first, absl::StrCat(size)}, {axes[b].first, absl::StrCat(rest)}});
      }
    }
  }
  return proposals;
}

std::optional<Finding> WorldProduct(const Facts& facts) {
  const proto::Mesh& mesh = facts.job.mesh();
  __int128 product = mesh.cp();
  for (const auto& axis : AxesOf(mesh)) product *= axis.second;
  if (product == facts.world) return std::nullopt;
  Finding finding;
  finding.message = absl::StrCat(
      "the mesh does not fill the cluster: pp ", mesh.pp(), " * dp_replicate ", mesh.dp_replicate(),
      " * dp_shard ", mesh.dp_shard(), " * cp ", mesh.cp(), " * tp ", mesh.tp(), " = ",
      Saturate(product), ", but nodes ", facts.job.cluster().nodes(), " * gpus_per_node ",
      facts.job.cluster().gpus_per_node(), " = ", facts.world);
  finding.fix = "set mesh.dp_shard: auto and choose tp and pp that divide";
  finding.proposals = FillWorld(mesh, facts.world);
  // Or as many machines as the mesh asks for.
  const int64_t per_node = facts.job.cluster().gpus_per_node();
  if (product <= kLargestWorld && product % per_node == 0) {
    finding.proposals.push_back(
        {{"cluster.nodes", absl::StrCat(static_cast<int64_t>(product / per_node))}});
  }
  return finding;
}

std::optional<Finding> WorldTooLarge(const Facts& facts) {
  if (facts.world <= kLargestWorld) return std::nullopt;
  return Finding{
      absl::StrCat("the cluster has nodes ", facts.job.cluster().nodes(), " * gpus_per_node ",
                   facts.job.cluster().gpus_per_node(), " = ", Counted(facts.world, "rank"),
                   "; at most ", kLargestWorld, " are supported"),
      absl::StrCat("at most ",
                   Counted(kLargestWorld / facts.job.cluster().gpus_per_node(), "node"))};
}

// Sizes of tp that divide what it has to, alone and with another axis that makes up for it.
std::vector<Proposal> OtherTensorSizes(const Facts& facts) {
  const proto::Model& model = facts.job.model();
  const proto::Mesh& mesh = facts.job.mesh();
  const int64_t common =
      std::gcd(std::gcd(model.heads(), model.kv_heads()), std::gcd(model.ffn_hidden(), int64_t{0}));
  std::vector<Proposal> proposals;
  if (common == 0) return proposals;
  std::vector<int64_t> sizes = NearestDivisors(common, mesh.tp());
  if (mesh.tp() > 1 && std::find(sizes.begin(), sizes.end(), 1) == sizes.end()) sizes.push_back(1);
  for (const int64_t size : sizes) {
    const Change change{"mesh.tp", absl::StrCat(size)};
    proposals.push_back({change});
    for (const auto& [name, other] : AxesOf(mesh)) {
      if (name == "mesh.tp" || other * mesh.tp() % size != 0) continue;
      proposals.push_back({change, {name, absl::StrCat(other * mesh.tp() / size)}});
    }
  }
  return proposals;
}

// The rule that mesh.tp divides `size`, a key called `name`.
std::optional<Finding> TensorDivides(const Facts& facts, const char* name, int64_t size) {
  const int64_t tp = facts.job.mesh().tp();
  if (size % tp == 0) return std::nullopt;
  return Finding{absl::StrCat("mesh.tp ", tp, " does not divide model.", name, " ", size, ": ",
                              size, " / ", tp, " leaves ", size % tp),
                 absl::StrCat("a mesh.tp that divides model.", name), OtherTensorSizes(facts)};
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
    for (Proposal& proposal :
         Propose("model.ffn_hidden",
                 NearestMultiples(facts.job.mesh().tp(), facts.job.model().ffn_hidden()))) {
      finding->proposals.push_back(std::move(proposal));
    }
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
      "a batch.sequence that mesh.tp divides",
      Propose("batch.sequence", NearestMultiples(tp, batch.sequence()))};
}

std::optional<Finding> SequenceParallelNoEffect(const Facts& facts) {
  if (!facts.job.parallelism().sequence_parallel() || facts.job.mesh().tp() > 1) {
    return std::nullopt;
  }
  return Finding{"parallelism.sequence_parallel has no effect with mesh.tp 1",
                 "remove it, or set mesh.tp above 1",
                 {{{"parallelism.sequence_parallel", "false"}}}};
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
      {DiagnosticCode::kTensorKvHeads, {"mesh.tp", "model.kv_heads", "model.heads"}, TensorKvHeads},
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
