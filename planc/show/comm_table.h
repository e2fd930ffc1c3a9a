#ifndef PLANC_PLANC_SHOW_COMM_TABLE_H_
#define PLANC_PLANC_SHOW_COMM_TABLE_H_

#include <cstdint>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// What the ranks of one stage send through one group kind with one opcode and element type in one
// program.
struct CommRow {
  int group = -1;
  Opcode opcode = Opcode::kAllReduce;
  DType dtype = DType::kF32;   // of the elements that are sent
  int64_t calls = 0;           // per rank
  int64_t bytes_per_rank = 0;  // sent by one rank
};

// Rows of one rank class, ordered by group, opcode, type. Skips indices that have no row.
std::vector<CommRow> CommTable(const Plan& plan, const RankClass& rank_class, ProgramKind kind);

// Times that each block runs in a program, by block.
std::vector<int64_t> BlockRuns(const Plan& plan, const Program& program);

}  // namespace planc

#endif  // PLANC_PLANC_SHOW_COMM_TABLE_H_
