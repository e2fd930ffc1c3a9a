#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/rule.h"

namespace planc {
namespace {

template <typename Enum>
std::string TextOf(const google::protobuf::EnumDescriptor& type, Enum value) {
  return EnumText(*type.FindValueByNumber(static_cast<int>(value)));
}

// The ranks of the unavailable axes as ranks of dp_shard.
std::vector<Proposal> WithoutAxes(const proto::Mesh& mesh) {
  Proposal proposal;
  if (mesh.ep() > 1) proposal.push_back({"mesh.ep", "1"});
  if (mesh.etp() > 1) proposal.push_back({"mesh.etp", "1"});
  if (mesh.cp() <= 1) return {proposal};
  proposal.push_back({"mesh.cp", "1"});
  std::vector<Proposal> proposals;
  proposals.push_back(proposal);
  for (const auto& [name, size] :
       {std::pair("mesh.dp_shard", mesh.dp_shard()), std::pair("mesh.tp", mesh.tp())}) {
    proposals.push_back(proposal);
    proposals.back().push_back({name, absl::StrCat(size * mesh.cp())});
  }
  return proposals;
}

std::optional<Finding> Axis(const Facts& facts) {
  const proto::Mesh& mesh = facts.job.mesh();
  std::vector<std::string> used;
  for (const auto& [name, size] :
       {std::pair("cp", mesh.cp()), std::pair("ep", mesh.ep()), std::pair("etp", mesh.etp())}) {
    if (size > 1) used.push_back(absl::StrCat("mesh.", name, " ", size));
  }
  if (used.empty()) return std::nullopt;
  return Finding{absl::StrCat(absl::StrJoin(used, ", "),
                              ": context and expert parallelism are not available yet"),
                 "set cp, ep and etp to 1 and use dp_shard, tp or pp", WithoutAxes(mesh)};
}

std::optional<Finding> Family(const Facts& facts) {
  const proto::Model& model = facts.job.model();
  const bool dense = model.family() != proto::MIXTRAL && model.family() != proto::DEEPSEEK_V3;
  if (dense && !model.has_moe() && !model.has_mla()) return std::nullopt;
  const std::string what =
      !dense ? absl::StrCat("family ", TextOf(*proto::Family_descriptor(), model.family()))
             : std::string(model.has_moe() ? "model.moe" : "model.mla");
  return Finding{absl::StrCat(what, ": routed experts and latent attention are not available yet"),
                 "use a dense family: llama, qwen2, qwen3, gpt2 or gpt3"};
}

std::optional<Finding> Schedule(const Facts& facts) {
  const proto::Schedule schedule = facts.job.parallelism().pipeline().schedule();
  if (schedule != proto::ZB_H1 && schedule != proto::ZB_V && schedule != proto::DUALPIPE) {
    return std::nullopt;
  }
  return Finding{absl::StrCat("the schedule ", TextOf(*proto::Schedule_descriptor(), schedule),
                              " is not available yet"),
                 "schedule: gpipe, 1f1b or interleaved_1f1b",
                 {{{"parallelism.pipeline.schedule", "1f1b"}},
                  {{"parallelism.pipeline.schedule", "interleaved_1f1b"}}}};
}

std::optional<Finding> Fp8(const Facts& facts) {
  const proto::Fp8Recipe recipe = facts.job.precision().fp8().recipe();
  if (recipe == proto::FP8_NONE) return std::nullopt;
  return Finding{absl::StrCat("the FP8 recipe ", TextOf(*proto::Fp8Recipe_descriptor(), recipe),
                              " is not available yet"),
                 "precision.fp8.recipe: none",
                 {{{"precision.fp8.recipe", "none"}}}};
}

std::optional<Finding> Master(const Facts& facts) {
  if (facts.job.precision().master() == proto::FP32) return std::nullopt;
  return Finding{
      "precision.master must be fp32", "precision.master: fp32", {{{"precision.master", "fp32"}}}};
}

std::optional<Finding> OptimizerState(const Facts& facts) {
  if (facts.job.precision().optimizer_state() == proto::FP32) return std::nullopt;
  return Finding{"precision.optimizer_state must be fp32 in this version",
                 "precision.optimizer_state: fp32",
                 {{{"precision.optimizer_state", "fp32"}}}};
}

}  // namespace

const std::vector<Rule>& AvailabilityRules() {
  static const auto* const kRules = new std::vector<Rule>{
      {DiagnosticCode::kAxisNotAvailable, {"mesh.cp", "mesh.ep", "mesh.etp"}, Axis},
      {DiagnosticCode::kFamilyNotAvailable, {"model.family"}, Family},
      {DiagnosticCode::kScheduleNotAvailable, {"parallelism.pipeline.schedule"}, Schedule},
      {DiagnosticCode::kFp8NotAvailable, {"precision.fp8.recipe"}, Fp8},
      {DiagnosticCode::kMasterNotAvailable, {"precision.master"}, Master},
      {DiagnosticCode::kOptimizerStateNotAvailable, {"precision.optimizer_state"}, OptimizerState},
  };
  return *kRules;
}

}  // namespace planc
