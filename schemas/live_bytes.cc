// Classical backward liveness over byte intervals: an instruction ends the life of what it writes
// (seen from its end) and begins that of what it reads. Programs repeat, so what a program reads
// before it writes it is live at the end of every program that may run before it.
#include "schemas/live_bytes.h"

#include <algorithm>
#include <vector>

namespace planc {
namespace {

// One operand. Its bytes are whole cells of the slot.
struct CellAccess {
  int pool = 0;
  int binding = 0;
  int first_cell = 0;
  int last_cell = 0;   // one past the end
  bool reads = false;  // a value from before the instruction; never scratch
};
using BlockAccesses = std::vector<std::vector<CellAccess>>;  // [instruction, operand]

// The slot of every pool is cut into cells wherever some operand begins or ends.
struct Cells {
  std::vector<std::vector<int64_t>> cuts;  // per pool: where its cells begin, and the end
  std::vector<BlockAccesses> blocks;

  int Count(int pool) const { return std::max(static_cast<int>(cuts[pool].size()) - 1, 0); }
  int Index(int pool, int64_t at) const {
    const std::vector<int64_t>& c = cuts[pool];
    return static_cast<int>(std::lower_bound(c.begin(), c.end(), at) - c.begin());
  }
};

std::array<int, 3> ScalarBuffers(const Plan& plan) {
  return {plan.scalars.loss, plan.scalars.grad_norm, plan.scalars.eval_loss};
}

Cells CutPools(const Plan& plan) {
  Cells cells;
  cells.cuts.resize(plan.pools.size());
  const auto cut = [&](const Buffer& buffer, int64_t offset, int64_t bytes) {
    std::vector<int64_t>& cuts = cells.cuts[buffer.pool];
    cuts.insert(cuts.end(), {buffer.offset + offset, buffer.offset + offset + bytes});
  };
  for (const Block& block : plan.blocks) {
    for (const Instruction& instruction : block.instructions) {
      for (const Operand& operand : instruction.operands) {
        cut(plan.buffers[operand.buffer], operand.offset, operand.bytes);
      }
    }
  }
  for (int scalar : ScalarBuffers(plan)) {
    if (scalar >= 0) cut(plan.buffers[scalar], 0, plan.buffers[scalar].bytes);
  }
  for (std::vector<int64_t>& cuts : cells.cuts) {
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  }
  for (const Block& block : plan.blocks) {
    BlockAccesses& accesses = cells.blocks.emplace_back();
    for (const Instruction& instruction : block.instructions) {
      const OpcodeTraits& traits = TraitsOf(instruction.opcode);
      std::vector<CellAccess>& operands = accesses.emplace_back();
      for (size_t k = 0; k < instruction.operands.size(); ++k) {
        const Operand& operand = instruction.operands[k];
        const Buffer& buffer = plan.buffers[operand.buffer];
        const int64_t begin = buffer.offset + operand.offset;
        const bool reads =
            traits.operands[k].access != Access::kWrite && !traits.operands[k].IsScratch();
        operands.push_back({buffer.pool, operand.binding, cells.Index(buffer.pool, begin),
                            cells.Index(buffer.pool, begin + operand.bytes), reads});
      }
    }
  }
  return cells;
}

// Which cells of one rank are live, walking backwards.
class Liveness {
 public:
  Liveness(const Plan& plan, const RankClass& rank_class)
      : plan_(plan), class_(rank_class), cells_(CutPools(plan)) {
    size_t count = 0;
    for (size_t p = 0; p < plan.pools.size(); ++p) {
      base_.push_back(count);
      count += static_cast<size_t>(class_.pool_slots[p]) * cells_.Count(static_cast<int>(p));
    }
    live_.resize(count);
  }

  // To the fixpoint: what is live before a program only grows with what is live after it.
  std::array<int64_t, kMemoryKindCount> Run() {
    std::vector<uint8_t> between = live_;  // where a step or an evaluation may begin or end
    for (std::vector<uint8_t> before; before != between;) {
      before = between;
      for (const ProgramKind kind : {ProgramKind::kEval, ProgramKind::kStep}) {
        Resume(between);
        // The runtime reads them when the program is done.
        if (kind == ProgramKind::kEval) MarkScalar(plan_.scalars.eval_loss);
        if (kind == ProgramKind::kStep) MarkScalar(plan_.scalars.loss);
        if (kind == ProgramKind::kStep) MarkScalar(plan_.scalars.grad_norm);
        RunProgram(kind);
        for (size_t i = 0; i < live_.size(); ++i) between[i] |= live_[i];
      }
    }
    Resume(between);
    RunProgram(ProgramKind::kPublish);
    RunProgram(ProgramKind::kInit);
    return most_;
  }

 private:
  void Set(int pool, size_t first, const CellAccess& access, uint8_t value) {
    const std::vector<int64_t>& cuts = cells_.cuts[pool];
    int64_t& bytes = bytes_[static_cast<int>(plan_.pools[pool].kind)];
    for (int c = access.first_cell; c < access.last_cell; ++c) {
      uint8_t& live = live_[first + c];
      if (live != value) bytes += (cuts[c + 1] - cuts[c]) * (value ? 1 : -1);
      live = value;
    }
  }

  size_t SlotCell(int pool, int64_t slot) const {
    return base_[pool] + static_cast<size_t>(slot) * cells_.Count(pool);
  }

  void MarkScalar(int scalar) {
    if (scalar < 0) return;
    const Buffer& buffer = plan_.buffers[scalar];
    const CellAccess all{buffer.pool, 0, cells_.Index(buffer.pool, buffer.offset),
                         cells_.Index(buffer.pool, buffer.offset + buffer.bytes)};
    for (int64_t slot = 0; slot < class_.pool_slots[buffer.pool]; ++slot) {
      Set(buffer.pool, SlotCell(buffer.pool, slot), all, 1);
    }
  }

  void Resume(const std::vector<uint8_t>& live) {
    live_ = live;
    bytes_ = {};
    for (size_t p = 0; p < plan_.pools.size(); ++p) {
      const int count = cells_.Count(static_cast<int>(p));
      for (int slot = 0; slot < class_.pool_slots[p]; ++slot) {
        for (int c = 0; c < count; ++c) {
          if (live[SlotCell(static_cast<int>(p), slot) + c] == 0) continue;
          bytes_[static_cast<int>(plan_.pools[p].kind)] +=
              cells_.cuts[p][c + 1] - cells_.cuts[p][c];
        }
      }
    }
  }

  void RunCall(const Call& call) {
    const BlockAccesses& block = cells_.blocks[call.block];
    for (auto accesses = block.rbegin(); accesses != block.rend(); ++accesses) {
      const auto set = [&](const CellAccess& a, uint8_t value) {
        Set(a.pool, SlotCell(a.pool, call.slots[a.binding]), a, value);
      };
      // While it runs, everything it touches is there beside what is live after it.
      for (const CellAccess& a : *accesses) set(a, 1);
      for (int k = 0; k < kMemoryKindCount; ++k) most_[k] = std::max(most_[k], bytes_[k]);
      for (const CellAccess& a : *accesses) {
        if (!a.reads) set(a, 0);
      }
      // What one operand writes another may read: the chunk that a gather finds in place.
      for (const CellAccess& a : *accesses) {
        if (a.reads) set(a, 1);
      }
    }
  }

  void RunProgram(ProgramKind kind) {
    const std::vector<Repeat>& steps = class_.programs[static_cast<int>(kind)].steps;
    for (auto repeat = steps.rbegin(); repeat != steps.rend(); ++repeat) {
      for (int64_t i = 0; i < repeat->count; ++i) {
        const std::vector<uint8_t> after = live_;
        for (auto call = repeat->calls.rbegin(); call != repeat->calls.rend(); ++call) {
          RunCall(*call);
        }
        // Runs differ in the microbatch only: the earlier ones do the same again.
        if (live_ == after) break;
      }
    }
  }

  const Plan& plan_;
  const RankClass& class_;
  const Cells cells_;
  std::vector<size_t> base_;  // first cell of each pool
  std::vector<uint8_t> live_;
  std::array<int64_t, kMemoryKindCount> bytes_{};  // of live_
  std::array<int64_t, kMemoryKindCount> most_{};
};

}  // namespace

std::array<int64_t, kMemoryKindCount> LiveBytes(const Plan& plan, const RankClass& rank_class) {
  std::array<int64_t, kMemoryKindCount> most = Liveness(plan, rank_class).Run();
  for (const Unit& unit : plan.units) {
    if (unit.snapshot < 0) continue;
    const Buffer& snapshot = plan.buffers[unit.snapshot];
    most[static_cast<int>(plan.pools[snapshot.pool].kind)] +=
        rank_class.pool_slots[snapshot.pool] * snapshot.bytes;
  }
  return most;
}

}  // namespace planc
