#include "planc/sampling/language_model.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline.h"
#include "kernels/instruction_set.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/data/token_source.h"
#include "runtime/device/host_device.h"
#include "schemas/job_spec.h"
#include "schemas/status.h"
#include "schemas/verify.h"

namespace planc {
namespace {

// One sequence of tokens, padded; causal attention keeps what follows from mattering.
class SequenceSource : public TokenSource {
 public:
  SequenceSource(const int32_t* tokens, int64_t count) : tokens_(tokens), count_(count) {}

  absl::Status LoadTokens(const MicrobatchPosition& position, int32_t* tokens) override {
    std::copy_n(tokens_, count_, tokens);
    std::fill(tokens + count_, tokens + position.rows, 0);
    return absl::OkStatus();
  }
  // The loss is of no interest.
  absl::Status LoadTargets(const MicrobatchPosition& position, int32_t* targets) override {
    std::fill_n(targets, position.rows, 0);
    return absl::OkStatus();
  }

 private:
  const int32_t* const tokens_;
  const int64_t count_;
};

// A range of addresses that an instruction touches.
struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;
};

Range RangeOf(const Session& session, const Operand& operand, const Call& call) {
  const char* const buffer = static_cast<const char*>(
      session.Address(operand.buffer, call.slots[static_cast<size_t>(operand.binding)]));
  return {buffer + operand.offset, buffer + operand.offset + operand.bytes};
}

}  // namespace

proto::Job EvaluationJob(const proto::Job& job, int64_t sequence) {
  proto::Job one = job;
  one.mutable_cluster()->Clear();
  one.mutable_cluster()->set_nodes(1);
  one.mutable_cluster()->set_gpus_per_node(1);
  one.mutable_cluster()->set_device("host");
  proto::Mesh& mesh = *one.mutable_mesh();
  for (const auto set :
       {&proto::Mesh::set_pp, &proto::Mesh::set_dp_replicate, &proto::Mesh::set_dp_shard,
        &proto::Mesh::set_cp, &proto::Mesh::set_tp, &proto::Mesh::set_ep, &proto::Mesh::set_etp}) {
    (mesh.*set)(1);
  }
  proto::Parallelism& parallelism = *one.mutable_parallelism();
  parallelism.set_zero(1);
  parallelism.set_sequence_parallel(false);
  parallelism.mutable_pipeline()->set_schedule(proto::ONE_F_ONE_B);
  parallelism.mutable_pipeline()->set_virtual_stages(1);
  parallelism.mutable_pipeline()->clear_stage_layers();
  parallelism.mutable_pipeline()->add_stage_layers(one.model().layers());
  one.mutable_batch()->set_global(1);
  one.mutable_batch()->set_micro(1);
  one.mutable_batch()->set_sequence(sequence);
  one.mutable_precision()->set_compute(proto::FP32);
  one.mutable_precision()->set_gradient_reduce(proto::FP32);
  one.set_recompute(proto::RECOMPUTE_NONE);
  return one;
}

absl::StatusOr<std::unique_ptr<LanguageModel>> LanguageModel::Load(const std::string& checkpoint,
                                                                   int64_t sequence, int threads) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  JobSpec spec;
  spec.job = EvaluationJob(manifest.job, std::min(sequence, manifest.job.batch().sequence()));
  std::unique_ptr<LanguageModel> model(new LanguageModel());
  PLANC_ASSIGN_OR_RETURN(model->plan_, CompilePlan(spec));
  const VerifyResult verified = VerifyPlan(model->plan_);
  if (!verified.violations.empty()) {
    return absl::InternalError(
        absl::StrCat("the plan is not safe: ", verified.violations.front().message));
  }
  PLANC_RETURN_IF_ERROR(model->Prepare(checkpoint, threads));
  return model;
}

absl::Status LanguageModel::Prepare(const std::string& checkpoint, int threads) {
  device_ = CreateHostDevice();
  PLANC_ASSIGN_OR_RETURN(const host::InstructionSet instruction_set, host::DetectInstructionSet());
  PLANC_ASSIGN_OR_RETURN(
      session_, Session::Create(plan_, 0, threads, instruction_set, device_.get(), nullptr));
  PLANC_ASSIGN_OR_RETURN(runner_, ProgramRunner::Create(*session_, device_.get(), {}));
  ProgramInputs inputs;
  inputs.restoring = true;
  PLANC_RETURN_IF_ERROR(runner_->Run(ProgramKind::kInit, inputs));
  PLANC_RETURN_IF_ERROR(LoadCheckpoint(plan_, /*tp=*/0, checkpoint, session_->Shards()).status());
  PLANC_RETURN_IF_ERROR(runner_->Run(ProgramKind::kPublish, ProgramInputs{}));
  return FindLogits();
}

absl::Status LanguageModel::FindLogits() {
  Range logits;
  absl::Status status;
  ForEachCall(
      plan_.classes[0].programs[static_cast<int>(ProgramKind::kEval)], [&](const Call& call) {
        for (const Instruction& instruction : plan_.blocks[call.block].instructions) {
          const OpcodeTraits& traits = TraitsOf(instruction.opcode);
          for (size_t i = 0; i < instruction.operands.size() && logits.begin != nullptr; ++i) {
            const Range range = RangeOf(*session_, instruction.operands[i], call);
            const bool apart = range.end <= logits.begin || logits.end <= range.begin;
            if (traits.operands[i].access == Access::kRead || apart) continue;
            status = absl::InternalError("the eval program overwrites its logits");
          }
          if (instruction.opcode != Opcode::kLossSumExp) continue;
          const Operand& operand = instruction.operands[OperandIndex(instruction.opcode, "logits")];
          if (plan_.buffers[operand.buffer].dtype != DType::kF32) {
            status = absl::InternalError("the logits are not float32");
          }
          logits = RangeOf(*session_, operand, call);
          row_ = instruction.integers[IntegerIndex(instruction.opcode, "vocab")];
        }
      });
  if (logits.begin == nullptr) return absl::InternalError("the eval program has no logits");
  logits_ = reinterpret_cast<const float*>(logits.begin);
  return status;
}

absl::StatusOr<const float*> LanguageModel::Logits(const std::vector<int32_t>& tokens) {
  const int64_t count = std::min(static_cast<int64_t>(tokens.size()), sequence());
  SequenceSource source(tokens.data() + tokens.size() - count, count);
  ProgramInputs inputs;
  inputs.tokens = &source;
  PLANC_RETURN_IF_ERROR(runner_->Run(ProgramKind::kEval, inputs));
  return logits_ + (count - 1) * row_;
}

}  // namespace planc
