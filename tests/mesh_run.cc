#include "tests/mesh_run.h"

#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/control_agreement.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "runtime/data/token_source.h"
#include "runtime/device/host_device.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/replica_check.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Sequences are numbered within the global batch, so that every mesh computes with the same set.
class PatternTokens : public TokenSource {
 public:
  explicit PatternTokens(const Plan& plan) : plan_(plan) {}
  absl::Status LoadTokens(const MicrobatchPosition& position, int32_t* tokens) override {
    return Fill(position, 0, tokens);
  }
  absl::Status LoadTargets(const MicrobatchPosition& position, int32_t* targets) override {
    return Fill(position, 1, targets);
  }

 private:
  absl::Status Fill(const MicrobatchPosition& p, int64_t shift, int32_t* out) const {
    const int64_t length = plan_.job.batch().sequence();
    const int64_t micro = p.rows / length;
    const int64_t ranks = plan_.mesh[Axis::kDpReplicate] * plan_.mesh[Axis::kDpShard];
    for (int64_t row = 0; row < p.rows; ++row) {
      const int64_t sequence = (p.microbatch * ranks + p.dp_index) * micro + row / length;
      out[row] = PatternToken(p.step, sequence, row % length + shift);
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
};

// Tokens of an evaluation; collects the losses of a microbatch's tokens when the next one begins.
class TokenLosses : public TokenSource {
 public:
  TokenLosses(const Session& session, TokenSource* tokens, std::vector<double>* losses)
      : session_(session), tokens_(*tokens), losses_(*losses) {
    for (const Block& block : session.plan().blocks) {
      for (const Instruction& instruction : block.instructions) {
        if (instruction.opcode == Opcode::kLossForward) loss_ = &instruction;
      }
    }
  }
  absl::Status LoadTokens(const MicrobatchPosition& position, int32_t* tokens) override {
    if (position.microbatch > 0) Collect();
    return tokens_.LoadTokens(position, tokens);
  }
  absl::Status LoadTargets(const MicrobatchPosition& position, int32_t* targets) override {
    return tokens_.LoadTargets(position, targets);
  }

  // loss_forward reads the maximum of each token's logits, then a pair: the sum of the exponentials
  // of logits minus maximum, and the target's logit.
  void Collect() const {
    if (loss_ == nullptr) return;
    const auto* max = static_cast<const float*>(session_.Address(loss_->operands[0].buffer));
    const auto* pair = static_cast<const float*>(session_.Address(loss_->operands[1].buffer));
    for (int64_t row = 0; row < loss_->integers[0]; ++row) {
      losses_.push_back(std::log(double{pair[2 * row]}) + max[row] - pair[2 * row + 1]);
    }
  }

 private:
  const Session& session_;
  TokenSource& tokens_;
  std::vector<double>& losses_;
  const Instruction* loss_ = nullptr;
};

enum class State { kMaster, kFirstMoment };

// Runs every rank and collects what the test compares.
class MeshRunner {
 public:
  MeshRunner(const Plan& plan, int steps, const std::string& directory,
             const MeshRunOptions& options)
      : plan_(plan),
        steps_(steps),
        directory_(directory),
        options_(options),
        world_size_(plan.mesh.WorldSize()) {
    run_.memory.resize(world_size_);
    run_.losses.resize(steps);
    run_.grad_norms.resize(steps);
  }

  MeshRun Run() {
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < world_size_; ++rank) {
      threads.emplace_back([this, rank] {
        const absl::Status status = RunRank(rank);
        if (status.ok()) return;
        const std::lock_guard<std::mutex> lock(mutex_);
        run_.errors.push_back(absl::StrCat("rank ", rank, ": ", status.ToString()));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return std::move(run_);
  }

 private:
  absl::Status RunRank(int64_t rank) {
    const std::unique_ptr<Device> device = CreateHostDevice();
    PLANC_ASSIGN_OR_RETURN(Groups groups, ConnectLoopbackGroups(plan_, rank, &world_));
    PLANC_ASSIGN_OR_RETURN(
        const std::unique_ptr<Session> session,
        Session::Create(plan_, rank, 1, options_.instruction_set, device.get(), &groups));
    for (int kind = 0; kind < kMemoryKindCount; ++kind) {
      run_.memory[rank][kind] = session->ArenaMemory(static_cast<MemoryKind>(kind));
    }
    PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramRunner> runner,
                           ProgramRunner::Create(*session, device.get(), {}));
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, {}));
    Collect(*session, State::kMaster, 1, &run_.initial_weights);
    ControlAgreement agreement(&groups.control());
    PLANC_ASSIGN_OR_RETURN(const int first, Resume(rank, *session, agreement));
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kPublish, {}));
    PatternTokens tokens(plan_);
    ReplicaCheck replicas(*session, &groups.control(), "");
    if (options_.token_losses) {
      TokenLosses losses(*session, &tokens, &run_.token_losses);
      ProgramInputs inputs;
      inputs.tokens = &losses;
      PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kEval, inputs));
      losses.Collect();
    }
    for (int step = first; step < steps_; ++step) {
      const ProgramInputs inputs = {step, HyperParametersOf(plan_.job, step), &tokens, false};
      PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kStep, inputs));
      if (rank == 0) {
        run_.losses[step] = session->Loss();
        run_.grad_norms[step] = session->GradNorm();
      }
      if (options_.touch != nullptr) options_.touch(*session, step + 1);
      PLANC_RETURN_IF_ERROR(replicas.Compare(step + 1));
      PLANC_RETURN_IF_ERROR(SaveIfDue(rank, *session, step + 1, agreement));
      if (step > first) continue;
      const double beta1 = plan_.job.optimizer().betas(0);
      Collect(*session, State::kFirstMoment, 1 / (1 - beta1), &run_.first_gradients);
      // From here on every buffer of every library has seen its largest message.
      PLANC_RETURN_IF_ERROR(groups.control().ShouldStop(0, false).status());
      if (rank == 0) ResetAllocationCounts();
    }
    PLANC_RETURN_IF_ERROR(groups.control().ShouldStop(1, false).status());
    if (rank == 0) run_.allocations = CountedAllocations();
    ProgramInputs inputs;
    inputs.tokens = &tokens;
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kEval, inputs));
    if (rank == 0) run_.eval_loss = session->EvalLoss();
    Collect(*session, State::kMaster, 1, &run_.weights);
    return groups.Shutdown();
  }

  // Loads what the job asks for and saves it again; returns the number of steps done.
  absl::StatusOr<int> Resume(int64_t rank, const Session& session, Agreement& agreement) {
    const int64_t tp = session.coordinates()[static_cast<int>(Axis::kTp)];
    std::vector<std::string> notices;
    PLANC_ASSIGN_OR_RETURN(
        const std::optional<int64_t> resumed,
        ResumeTraining(plan_, tp, directory_, "", session.Shards(), agreement, &notices));
    if (!resumed.has_value()) return 0;
    if (rank == 0) {
      run_.first_step = static_cast<int>(*resumed);
      run_.notices = notices;
    }
    PLANC_RETURN_IF_ERROR(Save(rank, session, *resumed, agreement));
    return static_cast<int>(*resumed);
  }

  absl::Status SaveIfDue(int64_t rank, const Session& session, int done, Agreement& agreement) {
    const int64_t every = plan_.job.checkpoint().every_steps();
    if (done != steps_ && (every == 0 || done % every != 0)) return absl::OkStatus();
    return Save(rank, session, done, agreement);
  }

  absl::Status Save(int64_t rank, const Session& session, int64_t done, Agreement& agreement) {
    if (directory_.empty()) return absl::OkStatus();
    return SaveCheckpoint(plan_, rank, session.Shards(), done, directory_, agreement);
  }

  // Copies this rank's shards, times `factor`, to their places in the whole parameters.
  void Collect(const Session& session, State state, double factor, Tensors* tensors) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t tp = session.coordinates()[static_cast<int>(Axis::kTp)];
    for (const ShardView& shard : session.Shards()) {
      const float* values = state == State::kMaster ? shard.master : shard.m;
      for (const UnitBox& box : ShardBoxes(plan_, shard.unit, tp, shard.begin, shard.count)) {
        const Parameter& parameter = plan_.params[box.parameter];
        std::vector<float>& tensor = (*tensors)[ParameterName(parameter.name, shard.layer)];
        if (tensor.empty()) tensor.resize(BoxElements(Box{{}, parameter.shape}));
        CopyBox(box.box, parameter.shape, values + (box.unit_begin - shard.begin), factor, &tensor);
      }
    }
  }

  static void CopyBox(const Box& box, const std::vector<int64_t>& shape, const float* from,
                      double factor, std::vector<float>* to) {
    const int64_t columns = box.shape.back();
    const int64_t rows = BoxElements(box) / columns;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t first_row = shape.size() > 1 ? box.offset[0] : 0;
      const int64_t begin = (first_row + row) * shape.back() + box.offset.back();
      for (int64_t c = 0; c < columns; ++c) {
        (*to)[begin + c] = static_cast<float>(from[row * columns + c] * factor);
      }
    }
  }

  const Plan& plan_;
  const int steps_;
  const std::string directory_;
  const MeshRunOptions& options_;
  const int64_t world_size_;
  LoopbackWorld world_;
  std::mutex mutex_;
  MeshRun run_;
};

}  // namespace

int32_t PatternToken(int64_t step, int64_t sequence, int64_t position) {
  uint64_t h = static_cast<uint64_t>(step * 1000003 + sequence * 10007 + position / 4);
  h = (h ^ (h >> 31)) * 0x9E3779B97F4A7C15u;
  return static_cast<int32_t>(((h >> 40) % 64) * 4 + position % 3);
}

MeshRun RunMesh(const Plan& plan, int steps, const std::string& directory,
                const MeshRunOptions& options) {
  return MeshRunner(plan, steps, directory, options).Run();
}

}  // namespace planc
