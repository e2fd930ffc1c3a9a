// Mutations of what a plan says of its job, model and costs, and of the evaluation program alone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/mutation/mutations.h"

namespace planc {
namespace {

// What the job of a plan names and the program implements.
Mutated ChangeJob(Plan& plan, Choice& choice) {
  proto::Job& job = plan.job;
  auto& model = *job.mutable_model();
  const int64_t field = choice.Below(9);
  switch (field) {
    case 0:
      model.set_family(model.family() == proto::QWEN3 ? proto::GPT2 : proto::QWEN3);
      break;
    case 1:
      model.set_hidden(model.hidden() + 16);
      break;
    case 2:
      model.set_layers(model.layers() + 1);
      break;
    case 3:
      model.set_ffn_hidden(model.ffn_hidden() * 2);
      break;
    case 4:
      model.set_vocab(model.vocab() + 1);
      break;
    case 5:
      job.mutable_precision()->set_compute(job.precision().compute() == proto::BF16 ? proto::FP32
                                                                                    : proto::BF16);
      break;
    case 6:
      job.set_recompute(job.recompute() == proto::RECOMPUTE_FULL ? proto::RECOMPUTE_NONE
                                                                 : proto::RECOMPUTE_FULL);
      break;
    case 7:
      job.mutable_optimizer()->set_clip_norm(job.optimizer().clip_norm() + 0.5);
      break;
    default:
      job.mutable_batch()->set_global(job.batch().global() * 2);
  }
  return {true, absl::StrCat("another job, field ", field)};
}

Mutated ExchangeNames(Plan& plan, Choice& choice) {
  const int64_t count = static_cast<int64_t>(plan.params.size());
  Parameter& a = plan.params[choice.Below(count)];
  Parameter& b = plan.params[choice.Below(count)];
  if (a.name == b.name) return {};
  std::swap(a.name, b.name);
  return {true, absl::StrCat("names of ", a.name, " and ", b.name, " exchanged")};
}

Mutated ChangeInitialValue(Plan& plan, Choice& choice) {
  Parameter& parameter = plan.params[choice.Below(static_cast<int64_t>(plan.params.size()))];
  switch (choice.Below(3)) {
    case 0:
      parameter.ones = !parameter.ones;
      break;
    case 1:
      parameter.init_std = parameter.init_std * 2 + 0.01;
      break;
    default:
      parameter.transposed = !parameter.transposed;
  }
  return {true, absl::StrCat("initial value or transposition of ", parameter.name)};
}

Mutated ChangeCost(Plan& plan, Choice& choice) {
  const Spot spot = ChooseSpot(plan, choice, [](const Instruction&) { return true; });
  if (spot.block < 0) return {};
  Cost& cost = plan.blocks[spot.block].instructions[spot.instruction].cost;
  switch (choice.Below(4)) {
    case 0:
      cost.flops += 2;
      break;
    case 1:
      cost.bytes_read += 64;
      break;
    case 2:
      cost.bytes_written += 64;
      break;
    default:
      cost.bytes_sent += 64;
  }
  return {true, absl::StrCat(SpotText(plan, spot), ": another cost")};
}

Instruction* ChooseInEvaluation(Plan& plan, Choice& choice, Block** block, int* at) {
  return ChooseInProgram(plan, ProgramKind::kEval, choice, block, at,
                         [](const Instruction&) { return true; });
}

std::string EvaluationText(const Block& block, int at, const char* what) {
  return absl::StrCat("block ", block.name, ", instruction ", at, " (",
                      TraitsOf(block.instructions[at].opcode).text, "): ", what);
}

Mutated DropInEvaluation(Plan& plan, Choice& choice) {
  Block* block = nullptr;
  int at = 0;
  if (ChooseInEvaluation(plan, choice, &block, &at) == nullptr) return {};
  Mutated result = {true, EvaluationText(*block, at, "dropped")};
  block->instructions.erase(block->instructions.begin() + at);
  return result;
}

Mutated DoubleInEvaluation(Plan& plan, Choice& choice) {
  Block* block = nullptr;
  int at = 0;
  if (ChooseInEvaluation(plan, choice, &block, &at) == nullptr) return {};
  Mutated result = {true, EvaluationText(*block, at, "doubled")};
  const Instruction again = block->instructions[at];
  block->instructions.insert(block->instructions.begin() + at, again);
  return result;
}

Mutated ChangeInEvaluation(Plan& plan, Choice& choice) {
  Block* block = nullptr;
  int at = 0;
  Instruction* const instruction = ChooseInEvaluation(plan, choice, &block, &at);
  if (instruction == nullptr) return {};
  const int64_t reals = static_cast<int64_t>(instruction->reals.size());
  const int64_t count = static_cast<int64_t>(instruction->integers.size()) + reals;
  if (count == 0) return {};
  const int64_t k = choice.Below(count);
  if (k < reals) {
    instruction->reals[k] = instruction->reals[k] * 1.01 + 1e-3;
  } else {
    instruction->integers[k - reals] += choice.Below(2) == 0 ? 1 : 16;
  }
  return {true, EvaluationText(*block, at, "another attribute")};
}

Mutated DropEvaluationEvent(Plan& plan, Choice& choice) {
  Block* block = nullptr;
  int at = 0;
  Instruction* const instruction = ChooseInEvaluation(plan, choice, &block, &at);
  if (instruction == nullptr) return {};
  auto& refs = instruction->waits.empty() ? instruction->records : instruction->waits;
  if (refs.empty()) return {};
  refs.erase(refs.begin() + choice.Below(static_cast<int64_t>(refs.size())));
  return {true, EvaluationText(*block, at, "a wait or record dropped")};
}

}  // namespace

std::vector<MutationKind> ContentMutations() {
  return {
      {"change job", ChangeJob},
      {"exchange names", ExchangeNames},
      {"change initial value", ChangeInitialValue},
      {"change cost", ChangeCost},
      {"drop in evaluation", DropInEvaluation},
      {"double in evaluation", DoubleInEvaluation},
      {"change in evaluation", ChangeInEvaluation},
      {"drop evaluation event", DropEvaluationEvent},
  };
}

}  // namespace planc
