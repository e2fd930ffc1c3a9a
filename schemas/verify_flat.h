#ifndef PLANC_SCHEMAS_VERIFY_FLAT_H_
#define PLANC_SCHEMAS_VERIFY_FLAT_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "schemas/verify_report.h"

namespace planc::verifying {

// How a value lies on one axis, as one byte.
enum LayoutCode : uint8_t {
  kReplicated = 0,
  kPartialSum = 1,
  kPartialMax = 2,
  kAsUnit = 3,          // a flat unit, split as each of its parameters is
  kRows = 4,            // split along dimension 0
  kColumns = 5,         // split along dimension 1
  kAnyLayout = 6,       // zeros: whatever the reader takes them for
  kOtherDimension = 7,  // split along a further dimension; no operation knows it
};
using AxisCodes = std::array<uint8_t, kAxisCount>;

// One operand with everything that does not depend on the call. The slot of its pool is cut into
// cells at every byte where some operand of the plan begins or ends, so that operands cover whole
// cells. An operand that moves with the dp_shard coordinate covers the cells of all coordinates;
// `tile` then says that one rank touches `bytes` of them, `stride` apart.
struct FlatOperand {
  int buffer = 0;
  int pool = 0;
  int binding = 0;
  int64_t begin = 0;  // bytes in the slot, over all coordinates
  int64_t end = 0;
  int first_cell = 0;  // in the slot
  int last_cell = 0;   // one past the end
  bool tile = false;
  int64_t stride = 0;  // tile only
  int64_t bytes = 0;   // on one rank
  int64_t rows = 0;
  int64_t columns = 0;
  DType dtype = DType::kF32;
  Access access = Access::kRead;
  bool scratch = false;
  AxisCodes declared{};  // layout of the buffer, as LayoutCode
};

struct FlatInstruction {
  const Instruction* source = nullptr;
  int block = 0;
  int index = 0;  // in its block
  Opcode opcode = Opcode::kZero;
  OpcodeKind kind = OpcodeKind::kCompute;
  int stream = 0;
  bool crosses_stages = false;  // takes part in communication between pipeline stages
  AxisSet group_axes = 0;       // axes of its group
  bool pipeline_ends = false;
  uint64_t identity = 0;  // hash of opcode and attributes
  int first_operand = 0;
  int operand_count = 0;
  int first_wait = 0;                        // waits of the block before this instruction
  int first_record = 0;                      // records of the block before this instruction
  std::vector<std::pair<int, int>> aliases;  // operands that may not share memory in one call
};

struct FlatBlock {
  int first_instruction = 0;  // FlatPlan::instructions
  int count = 0;
  int waits = 0;  // over all its instructions
  int records = 0;
  std::array<std::vector<int>, kStreamCount> on_stream;  // instruction indices within the block
};

// The plan without indirections.
struct FlatPlan {
  const Plan* plan = nullptr;
  std::vector<FlatOperand> operands;
  std::vector<FlatInstruction> instructions;
  std::vector<FlatBlock> blocks;
  std::vector<int> pool_cells;             // cells of one slot
  std::vector<std::vector<int64_t>> cuts;  // per pool: where its cells begin, and the end
};

struct FlatCall {
  int block = 0;
  int layer = -1;
  int microbatch = -1;
  const int32_t* slots = nullptr;
  int64_t first_instruction = 0;  // in program order
  int64_t first_wait = 0;
  int64_t first_record = 0;
};

// One program of one class, with its repeats expanded and its waits resolved.
struct FlatProgram {
  std::vector<FlatCall> calls;
  int64_t instructions = 0;
  // For each wait in program order: the record it waits for, -1 for none.
  std::vector<int32_t> wait_record;
  // For each record in program order: the instruction that makes it, and its stream.
  struct Record {
    int64_t instruction;
    int stream;
  };
  std::vector<Record> records;
};

uint64_t Mix(uint64_t hash, uint64_t value);

// REQUIRES: CheckStructure, CheckPrograms and CheckBounds found nothing.
FlatPlan Flatten(const Plan& plan);
FlatProgram FlattenProgram(const FlatPlan& flat, const RankClass& rank_class, ProgramKind kind);

// Cells that the classes need together, and accesses of cells when all programs run once;
// kMaxNumber at most.
int64_t CountCells(const FlatPlan& flat);
int64_t CountAccesses(const FlatPlan& flat);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_FLAT_H_
