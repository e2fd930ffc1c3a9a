#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/nearest.h"
#include "compiler/spec/rule.h"
#include "compiler/spec/suggest.h"
#include "schemas/counted.h"

namespace planc {
namespace {

std::optional<Finding> BatchProduct(const Facts& facts) {
  const proto::Batch& batch = facts.job.batch();
  const proto::Mesh& mesh = facts.job.mesh();
  const int64_t unit = batch.micro() * facts.data_parallel;
  if (batch.global() % unit == 0) return std::nullopt;
  return Finding{
      absl::StrCat("batch.global ", batch.global(),
                   " is not a whole number of microbatches on each rank: micro ", batch.micro(),
                   " * dp_replicate ", mesh.dp_replicate(), " * dp_shard ", mesh.dp_shard(), " = ",
                   unit, ", which leaves ", batch.global() % unit),
      "a batch.global that is a multiple",
      Propose("batch.global", NearestMultiples(unit, batch.global()))};
}

std::optional<Finding> BetasCount(const Facts& facts) {
  const int count = facts.job.optimizer().betas_size();
  if (count == 2) return std::nullopt;
  return Finding{absl::StrCat("optimizer.betas has ", Counted(count, "entry"), ", but needs 2"),
                 "optimizer.betas: [0.9, 0.95]",
                 {{{"optimizer.betas", "[0.9, 0.95]"}}}};
}

// The key that says when the decay ends.
const char* DecayKey(const proto::Job& job) {
  return job.lr_schedule().decay_steps() == job.run().steps() ? "run.steps"
                                                              : "lr_schedule.decay_steps";
}

std::optional<Finding> WarmupTooLong(const Facts& facts) {
  const int64_t warmup = facts.job.lr_schedule().warmup_steps();
  const int64_t steps = facts.job.lr_schedule().decay_steps();
  if (warmup <= steps) return std::nullopt;
  return Finding{absl::StrCat("lr_schedule.warmup_steps ", warmup, " is above ",
                              DecayKey(facts.job), " ", steps),
                 absl::StrCat("lr_schedule.warmup_steps of at most ", steps),
                 {{{"lr_schedule.warmup_steps", absl::StrCat(steps / 10)}}}};
}

std::optional<Finding> NoDecaySteps(const Facts& facts) {
  const proto::LrSchedule& schedule = facts.job.lr_schedule();
  const int64_t steps = schedule.decay_steps();
  if (schedule.decay() == proto::CONSTANT || schedule.warmup_steps() != steps) return std::nullopt;
  return Finding{absl::StrCat("lr_schedule.warmup_steps ", schedule.warmup_steps(), " equals ",
                              DecayKey(facts.job), ": no step is left for the decay"),
                 "a shorter warm-up, or lr_schedule.decay: constant",
                 {{{"lr_schedule.warmup_steps", absl::StrCat(steps / 10)}},
                  {{"lr_schedule.decay", "constant"}}}};
}

std::optional<Finding> EvalNeedsValidation(const Facts& facts) {
  const int64_t every = facts.job.run().eval_every_steps();
  if (every == 0 || facts.job.data().validation_size() > 0) return std::nullopt;
  return Finding{
      absl::StrCat("run.eval_every_steps is ", every, ", but data.validation names no file"),
      "name validation files, or remove eval_every_steps"};
}

std::optional<Finding> BytesVocab(const Facts& facts) {
  const int64_t vocab = facts.job.model().vocab();
  if (facts.job.data().format() != proto::BYTES || vocab >= 256) return std::nullopt;
  return Finding{absl::StrCat("data.format bytes has 256 tokens, but model.vocab is ", vocab),
                 "model.vocab: 256",
                 {{{"model.vocab", "256"}}}};
}

std::optional<Finding> TokenBytes(const Facts& facts) {
  const int64_t bytes = facts.job.data().token_bytes();
  if (bytes == 2 || bytes == 4) return std::nullopt;
  return Finding{absl::StrCat("data.token_bytes must be 2 or 4, but is ", bytes),
                 "data.token_bytes: 2 or 4", Propose("data.token_bytes", {2, 4})};
}

std::optional<Finding> TokenBytesVocab(const Facts& facts) {
  const proto::Data& data = facts.job.data();
  const bool narrow = data.format() == proto::TOKENS && data.token_bytes() == 2;
  if (!narrow || facts.job.model().vocab() <= 65536) return std::nullopt;
  return Finding{absl::StrCat("data.token_bytes 2 holds 65536 tokens, but model.vocab is ",
                              facts.job.model().vocab()),
                 "token_bytes: 4, if the files hold uint32"};
}

std::optional<Finding> ReduceBelowCompute(const Facts& facts) {
  const proto::Precision& precision = facts.job.precision();
  if (precision.compute() != proto::FP32 || precision.gradient_reduce() != proto::BF16) {
    return std::nullopt;
  }
  return Finding{"precision.gradient_reduce is bf16, but precision.compute is fp32",
                 "precision.gradient_reduce: fp32",
                 {{{"precision.gradient_reduce", "fp32"}}}};
}

std::optional<Finding> UnknownAllowedChange(const Facts& facts) {
  std::vector<std::string> known;
  for (const JobSection& section : AllJobSections()) {
    if (!section.path.empty()) known.push_back(section.path);
  }
  for (const JobKey& key : AllJobKeys()) known.push_back(key.path);
  std::vector<std::string> unknown;
  std::string nearest;
  for (const std::string& entry : facts.job.checkpoint().allow_changes()) {
    if (std::find(known.begin(), known.end(), entry) != known.end()) continue;
    unknown.push_back(absl::StrCat("`", entry, "`"));
    if (nearest.empty()) nearest = Nearest(entry, known);
    if (nearest.empty()) nearest = absl::StrJoin(SuggestKeys("", entry), " or ");
  }
  if (unknown.empty()) return std::nullopt;
  return Finding{absl::StrCat("checkpoint.allow_changes lists ", absl::StrJoin(unknown, ", "),
                              ": no key or section has this name"),
                 nearest.empty() ? "the name of a key or section, e.g. optimizer.lr"
                                 : absl::StrCat("did you mean ", nearest, "?")};
}

}  // namespace

const std::vector<Rule>& TrainingRules() {
  static const auto* const kRules = new std::vector<Rule>{
      {DiagnosticCode::kBatchProduct,
       {"batch.global", "batch.micro", "mesh.dp_replicate", "mesh.dp_shard"},
       BatchProduct},
      {DiagnosticCode::kBetasCount, {"optimizer.betas"}, BetasCount},
      {DiagnosticCode::kWarmupTooLong,
       {"lr_schedule.warmup_steps", "lr_schedule.decay_steps", "run.steps"},
       WarmupTooLong},
      {DiagnosticCode::kNoDecaySteps,
       {"lr_schedule.warmup_steps", "lr_schedule.decay_steps", "run.steps", "lr_schedule.decay"},
       NoDecaySteps},
      {DiagnosticCode::kEvalNeedsValidation,
       {"run.eval_every_steps", "data.validation"},
       EvalNeedsValidation},
      {DiagnosticCode::kBytesVocab, {"model.vocab", "data.format"}, BytesVocab},
      {DiagnosticCode::kTokenBytes, {"data.token_bytes"}, TokenBytes},
      {DiagnosticCode::kTokenBytesVocab,
       {"data.token_bytes", "data.format", "model.vocab"},
       TokenBytesVocab},
      {DiagnosticCode::kReduceBelowCompute,
       {"precision.gradient_reduce", "precision.compute"},
       ReduceBelowCompute},
      {DiagnosticCode::kUnknownAllowedChange, {"checkpoint.allow_changes"}, UnknownAllowedChange},
  };
  return *kRules;
}

}  // namespace planc
