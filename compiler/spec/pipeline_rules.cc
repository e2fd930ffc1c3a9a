#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/spec/nearest.h"
#include "compiler/spec/rule.h"
#include "compiler/spec/stage_layers.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr char kSchedule[] = "parallelism.pipeline.schedule";
constexpr char kVirtual[] = "parallelism.pipeline.virtual_stages";
constexpr char kStages[] = "parallelism.pipeline.stage_layers";

const proto::Pipeline& PipelineOf(const Facts& facts) { return facts.job.parallelism().pipeline(); }

bool IsInterleaved(const Facts& facts) {
  return PipelineOf(facts).schedule() == proto::INTERLEAVED_1F1B;
}

std::vector<int64_t> StagesOf(const Facts& facts) {
  const auto& stages = PipelineOf(facts).stage_layers();
  return std::vector<int64_t>(stages.begin(), stages.end());
}

// Fewer chunks on each rank; or fewer pipeline ranks and more of dp_shard.
std::vector<Proposal> FewerChunks(const Facts& facts) {
  std::vector<Proposal> proposals;
  const int64_t virtual_stages = PipelineOf(facts).virtual_stages();
  for (int64_t fewer = virtual_stages / 2; fewer > 1; fewer /= 2) {
    proposals.push_back({{kVirtual, absl::StrCat(fewer)}});
  }
  if (virtual_stages > 1) proposals.push_back({{kVirtual, "1"}, {kSchedule, "1f1b"}});
  const int64_t pp = facts.job.mesh().pp();
  for (int64_t fewer = pp / 2; fewer >= 1; fewer /= 2) {
    if (pp % fewer != 0) continue;
    proposals.push_back(
        {{"mesh.pp", absl::StrCat(fewer)},
         {"mesh.dp_shard", absl::StrCat(facts.job.mesh().dp_shard() * (pp / fewer))}});
  }
  return proposals;
}

// No split was found and none was given.
std::optional<Finding> TooFewLayers(const Facts& facts) {
  const int64_t layers = facts.job.model().layers();
  const int64_t pp = facts.job.mesh().pp();
  const int64_t virtual_stages = PipelineOf(facts).virtual_stages();
  if (facts.IsWritten(kStages) || !SplitLayers(layers, pp, virtual_stages).empty()) {
    return std::nullopt;
  }
  return Finding{absl::StrCat("model.layers ", layers, " is too few for pp ", pp,
                              " * virtual_stages ", virtual_stages, " = ", pp * virtual_stages,
                              " chunks: only the first and the last chunk may be empty, and no "
                              "pipeline rank"),
                 virtual_stages > 1 ? "fewer virtual_stages, or a smaller mesh.pp"
                                    : absl::StrCat("mesh.pp of at most ", layers),
                 FewerChunks(facts)};
}

std::optional<Finding> StageCount(const Facts& facts) {
  const int64_t chunks = facts.job.mesh().pp() * PipelineOf(facts).virtual_stages();
  const int64_t count = PipelineOf(facts).stage_layers_size();
  if (!facts.IsWritten(kStages) || count == chunks) return std::nullopt;
  return Finding{absl::StrCat("stage_layers has ", Counted(count, "entry"), ", but pp ",
                              facts.job.mesh().pp(), " * virtual_stages ",
                              PipelineOf(facts).virtual_stages(), " = ", Counted(chunks, "chunk")),
                 "one entry for each chunk, or remove stage_layers to split evenly"};
}

std::optional<Finding> StageSum(const Facts& facts) {
  int64_t sum = 0;
  for (const int64_t layers : StagesOf(facts)) sum += layers;
  const int64_t layers = facts.job.model().layers();
  if (sum == layers) return std::nullopt;
  return Finding{absl::StrCat("stage_layers add up to ", sum, ", but model.layers is ", layers),
                 sum < layers ? absl::StrCat("add ", layers - sum, " to an entry")
                              : absl::StrCat("take ", sum - layers, " from an entry")};
}

std::optional<Finding> EmptyStage(const Facts& facts) {
  if (!facts.IsWritten(kStages)) return std::nullopt;
  const std::vector<int64_t> stages = StagesOf(facts);
  for (size_t chunk = 1; chunk + 1 < stages.size(); ++chunk) {
    if (stages[chunk] > 0) continue;
    return Finding{absl::StrCat("entry ", chunk + 1,
                                " of stage_layers is 0: only the first and "
                                "the last chunk may have no layer"),
                   "give it at least 1 layer"};
  }
  const int64_t rank = RankWithoutLayers(stages, facts.job.mesh().pp());
  if (rank < 0) return std::nullopt;
  return Finding{absl::StrCat("pipeline rank ", rank, " has no layer in any of its chunks"),
                 "give each pipeline rank at least 1 layer"};
}

std::optional<Finding> VirtualNeedsInterleaved(const Facts& facts) {
  if (PipelineOf(facts).virtual_stages() == 1 || IsInterleaved(facts)) return std::nullopt;
  return Finding{absl::StrCat("virtual_stages ", PipelineOf(facts).virtual_stages(),
                              " needs schedule interleaved_1f1b"),
                 "schedule: interleaved_1f1b, or virtual_stages: 1",
                 {{{kVirtual, "1"}}, {{kSchedule, "interleaved_1f1b"}}}};
}

std::optional<Finding> InterleavedNeedsVirtual(const Facts& facts) {
  if (!IsInterleaved(facts) || PipelineOf(facts).virtual_stages() > 1) return std::nullopt;
  return Finding{"schedule interleaved_1f1b needs virtual_stages of at least 2, but it is 1",
                 "virtual_stages: 2, or schedule: 1f1b",
                 {{{kSchedule, "1f1b"}}, {{kVirtual, "2"}}}};
}

std::optional<Finding> InterleavedNeedsPipeline(const Facts& facts) {
  if (!IsInterleaved(facts) || facts.job.mesh().pp() > 1) return std::nullopt;
  return Finding{"schedule interleaved_1f1b needs mesh.pp of at least 2, but it is 1",
                 "mesh.pp: 2, or schedule: 1f1b with virtual_stages: 1",
                 {{{kSchedule, "1f1b"}, {kVirtual, "1"}}}};
}

std::optional<Finding> InterleavedMicrobatches(const Facts& facts) {
  const int64_t pp = facts.job.mesh().pp();
  if (!IsInterleaved(facts) || facts.accumulation == 0 || facts.accumulation % pp == 0) {
    return std::nullopt;
  }
  const proto::Batch& batch = facts.job.batch();
  const int64_t per_round = batch.micro() * facts.data_parallel * pp;
  return Finding{
      absl::StrCat(
          "with interleaved_1f1b the microbatches of a step must be a multiple of mesh.pp ", pp,
          ", but global ", batch.global(), " / (micro ", batch.micro(), " * dp_replicate ",
          facts.job.mesh().dp_replicate(), " * dp_shard ", facts.job.mesh().dp_shard(),
          ") = ", facts.accumulation),
      "a batch.global that is a multiple",
      Propose("batch.global", NearestMultiples(per_round, batch.global()))};
}

}  // namespace

const std::vector<Rule>& PipelineRules() {
  static const auto* const kRules = new std::vector<Rule>{
      {DiagnosticCode::kTooFewLayers, {"mesh.pp", kVirtual, "model.layers"}, TooFewLayers},
      {DiagnosticCode::kStageCount, {kStages, "mesh.pp", kVirtual}, StageCount},
      {DiagnosticCode::kStageSum, {kStages, "model.layers"}, StageSum},
      {DiagnosticCode::kEmptyStage, {kStages, "mesh.pp"}, EmptyStage},
      {DiagnosticCode::kVirtualNeedsInterleaved, {kVirtual, kSchedule}, VirtualNeedsInterleaved},
      {DiagnosticCode::kInterleavedNeedsVirtual, {kSchedule, kVirtual}, InterleavedNeedsVirtual},
      {DiagnosticCode::kInterleavedNeedsPipeline, {kSchedule, "mesh.pp"}, InterleavedNeedsPipeline},
      {DiagnosticCode::kInterleavedMicrobatches,
       {"batch.global", "batch.micro", "mesh.pp", "mesh.dp_replicate", "mesh.dp_shard", kSchedule},
       InterleavedMicrobatches},
  };
  return *kRules;
}

}  // namespace planc
