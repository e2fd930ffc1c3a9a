#include "planc/show/comm_table.h"

#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

namespace planc {

std::vector<int64_t> BlockRuns(const Plan& plan, const Program& program) {
  std::vector<int64_t> runs(plan.blocks.size(), 0);
  for (const Repeat& repeat : program.steps) {
    for (const Call& call : repeat.calls) {
      if (call.block < 0 || static_cast<size_t>(call.block) >= runs.size()) continue;
      runs[call.block] += repeat.count;
    }
  }
  return runs;
}

std::vector<CommRow> CommTable(const Plan& plan, const RankClass& rank_class, ProgramKind kind) {
  const std::vector<int64_t> runs = BlockRuns(plan, rank_class.programs[static_cast<int>(kind)]);
  std::map<std::tuple<int, Opcode, DType>, CommRow> rows;
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    if (runs[b] == 0) continue;
    for (const Instruction& instruction : plan.blocks[b].instructions) {
      const int group = instruction.group;
      if (group < 0 || static_cast<size_t>(group) >= plan.groups.size()) continue;
      const int buffer = instruction.operands.empty() ? -1 : instruction.operands[0].buffer;
      if (buffer < 0 || static_cast<size_t>(buffer) >= plan.buffers.size()) continue;
      const DType dtype = plan.buffers[buffer].dtype;
      CommRow& row = rows[{group, instruction.opcode, dtype}];
      row.dtype = dtype;
      row.group = group;
      row.opcode = instruction.opcode;
      row.calls += runs[b];
      row.bytes_per_rank += runs[b] * instruction.cost.bytes_sent;
    }
  }
  std::vector<CommRow> table;
  for (const auto& [key, row] : rows) table.push_back(row);
  return table;
}

}  // namespace planc
