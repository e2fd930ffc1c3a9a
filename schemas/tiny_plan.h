#ifndef PLANC_SCHEMAS_TINY_PLAN_H_
#define PLANC_SCHEMAS_TINY_PLAN_H_

#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// The smallest plan that trains something, written by hand: an embedding table and an output
// matrix, no layers, f32, two microbatches of one sequence of four tokens. On one rank, or on two
// pipeline stages with the table on the first and the output on the second. For tests of everything
// that reads plans.
//
// Pools, blocks and buffers are found by name.
struct TinyPlan {
  // `stages` is 1 or 2; with 2 the first stage runs `first` and the second `second`, orders of
  // microbatch forwards and backwards such as "F0 F1 B0 B1".
  explicit TinyPlan(int stages, const std::string& first = "F0 F1 B0 B1",
                    const std::string& second = "F0 B0 F1 B1");

  int PoolOf(const std::string& name) const;
  int BufferOf(const std::string& name) const;
  int BlockOf(const std::string& name) const;
  Instruction& At(const std::string& block, int index) {
    return plan.blocks[BlockOf(block)].instructions[index];
  }

  Plan plan;

 private:
  void AddPool(const std::string& name, MemoryKind kind, std::vector<int32_t> slots);
  void AddBuffer(const std::string& name, const std::string& pool, DType dtype,
                 std::vector<int64_t> shape, const Layout& layout = {});
  void AddUnit(const std::string& name, std::vector<int32_t> slots);
  // Events of every instruction: one event for each (writer's stream, buffer), found by name.
  Instruction& Add(const std::string& block, Opcode opcode, std::vector<std::string> operands,
                   std::vector<int64_t> integers = {}, std::vector<double> reals = {},
                   Stream stream = Stream::kCompute, const std::string& group = "");
  void Link(const std::string& event, Instruction& recorder, Instruction& waiter);
  void Call(Program& program, const std::string& block, int microbatch);
  void AddBlocks(int stages);
  void AddSchedule(int stage, int stages, const std::string& order);
  void PlacePools();
  int Bind(Block& block, int pool);
};

}  // namespace planc

#endif  // PLANC_SCHEMAS_TINY_PLAN_H_
