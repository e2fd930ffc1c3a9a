#ifndef PLANC_RUNTIME_STEP_SESSION_H_
#define PLANC_RUNTIME_STEP_SESSION_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul.h"
#include "runtime/device/device.h"
#include "runtime/device/static_arena.h"
#include "runtime/process_group/connect_groups.h"
#include "runtime/step/prepared_program.h"
#include "runtime/step/shard_view.h"
#include "schemas/mesh.h"
#include "schemas/plan.h"

namespace planc {

// A plan bound to one rank: its arenas, its instructions with every address looked up, its matrix
// products and its process groups. Everything is allocated by Create and nothing afterwards.
// Carrying out the programs is ProgramRunner's work.
class Session {
 public:
  // Binds `plan` to `rank`. `threads` is what a kernel of the compute stream may use,
  // `instruction_set` the largest set of any kernel: this machine has it, and so does every rank of
  // the job. `plan`, `device` and `groups` must outlive the session; `groups` may be null when no
  // instruction of this rank communicates. REQUIRES: VerifyPlan finds nothing wrong with `plan`.
  // Errors: ResourceExhausted when the device lacks memory; Internal when the plan asks for
  // something that the kernels do not have, or a needed process group is missing.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Plan& plan, int64_t rank,
                                                         int threads,
                                                         host::InstructionSet instruction_set,
                                                         Device* device, Groups* groups);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Plan& plan() const { return plan_; }
  int64_t rank() const { return rank_; }
  int threads() const { return threads_; }
  host::InstructionSet instruction_set() const { return instruction_set_; }
  const Coordinates& coordinates() const { return coordinates_; }
  const RankClass& rank_class() const { return *rank_class_; }
  Groups* groups() const { return groups_; }

  // What the arena of `kind`, for which the plan has RankClass::arena_bytes, takes of the device.
  DeviceMemory ArenaMemory(MemoryKind kind) const;

  // Start of a buffer in slot `slot` of its pool.
  void* Address(int buffer, int64_t slot = 0) const;

  // Scalars of the last step or eval program: mean losses over the global batch, and the gradient
  // norm before clipping. NaN when the plan has no such scalar.
  double Loss() const { return ReadScalar(plan_.scalars.loss); }
  double GradNorm() const { return ReadScalar(plan_.scalars.grad_norm); }
  double EvalLoss() const { return ReadScalar(plan_.scalars.eval_loss); }

  // Every shard of master weights and moments on this rank: by unit, then by layer.
  std::vector<ShardView> Shards() const;

  const PreparedProgram& program(ProgramKind kind) const {
    return programs_[static_cast<int>(kind)];
  }
  const PreparedBlock& block(int block) const { return blocks_[block]; }
  int32_t event_cells() const { return tables_.cells; }

 private:
  Session(const Plan& plan, int64_t rank, int threads, host::InstructionSet instruction_set,
          Device* device, Groups* groups);

  absl::Status AllocateArenas();
  absl::Status PrepareBlocks();
  // Threads, matrix product, group and peer of an instruction.
  absl::Status BindResources(const Instruction& instruction, PreparedInstruction* prepared);
  absl::Status BindMatmul(const Instruction& instruction, PreparedInstruction* prepared);
  absl::Status BindGroup(const Instruction& instruction, PreparedInstruction* prepared);
  double ReadScalar(int buffer) const;
  ShardView ShardOf(int unit, int layer, int64_t slot) const;

  const Plan& plan_;
  const int64_t rank_;
  const int threads_;
  const host::InstructionSet instruction_set_;
  Device* const device_;
  Groups* const groups_;
  Coordinates coordinates_{};
  const RankClass* rank_class_ = nullptr;

  std::array<std::unique_ptr<StaticArena>, kMemoryKindCount> arenas_;
  RankTables tables_;
  std::vector<PreparedBlock> blocks_;  // empty where no program of this rank calls the block
  std::array<PreparedProgram, kProgramCount> programs_;
  // One product per distinct shape and stream; streams run at the same time.
  std::map<std::string, std::unique_ptr<host::Matmul>> matmuls_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_SESSION_H_
