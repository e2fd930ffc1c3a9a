#ifndef PLANC_RUNTIME_STEP_PREPARED_PROGRAM_H_
#define PLANC_RUNTIME_STEP_PREPARED_PROGRAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/step/prepared_instruction.h"
#include "schemas/plan.h"

namespace planc {

// An event cell as seen from a block: cell first_cell + (slot of `binding` in the call).
struct EventUse {
  int32_t first_cell = 0;
  int32_t binding = 0;
};

// A range of PreparedBlock::event_uses.
struct EventUses {
  int32_t begin = 0;
  int32_t end = 0;
};

// One thing that a stream does as it walks a block: carry out an instruction of its own, or note
// that another stream records an event here, so that a later wait knows how many records to expect.
struct StreamItem {
  int32_t instruction = -1;  // >= 0: carry out; -1: note `noted`
  EventUse noted;
};

// A block bound to this rank.
struct PreparedBlock {
  std::vector<PreparedInstruction> instructions;  // as in Block::instructions
  std::vector<EventUses> waits;                   // by instruction
  std::vector<EventUses> records;                 // by instruction
  std::vector<EventUse> event_uses;
  std::array<std::vector<StreamItem>, kStreamCount> items;  // in program order
};

// A call with its slots in PreparedProgram::slots.
struct PreparedCall {
  int32_t block = 0;
  int32_t layer = -1;
  int32_t microbatch = -1;
  int32_t first_slot = 0;
};

struct PreparedRepeat {
  int64_t count = 1;
  int32_t microbatch_step = 0;
  int32_t first_call = 0;
  int32_t call_count = 0;
};

// A program as flat arrays. Every stream walks it by itself.
struct PreparedProgram {
  std::vector<PreparedRepeat> repeats;
  std::vector<PreparedCall> calls;
  std::vector<int32_t> slots;
  std::array<bool, kStreamCount> uses_stream{};
};

// Where the events and pools of one rank are.
struct RankTables {
  std::vector<int32_t> first_cell;  // by event
  int32_t cells = 0;
  std::vector<char*> pool_memory;  // by pool: address of slot 0
};

// Cells of all events of `rank_class`; one for each slot of the event's pool.
RankTables TablesOf(const Plan& plan, const RankClass& rank_class);

PreparedProgram PrepareProgram(const Plan& plan, const Program& program);

// The blocks that any program of `rank_class` calls, by block index.
std::vector<bool> CalledBlocks(const Plan& plan, const RankClass& rank_class);

// Binds `block` to memory and events; `dp_shard` is the rank's coordinate. Matmuls, groups and
// peers are left to the caller. InternalError when an instruction does not have the operands and
// attributes of its row in opcode.def.
absl::StatusOr<PreparedBlock> PrepareBlock(const Plan& plan, const Block& block,
                                           const RankTables& tables, int64_t dp_shard);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PREPARED_PROGRAM_H_
