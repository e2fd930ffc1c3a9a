#ifndef PLANC_TESTS_MUTATION_MUTATIONS_H_
#define PLANC_TESTS_MUTATION_MUTATIONS_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// Random numbers that are the same on every machine.
class Choice {
 public:
  explicit Choice(uint64_t seed) : engine_(seed) {}
  // A number in [0, count). REQUIRES: count > 0.
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count));
  }

 private:
  std::mt19937_64 engine_;
};

// What one mutation did.
struct Mutated {
  bool applied = false;  // false: the plan has nothing of the kind, or the change would be none
  std::string text;      // "block layer_forward, instruction 3: operand 1 offset += 64"
};

// One way to spoil a plan.
struct MutationKind {
  const char* name;
  Mutated (*apply)(Plan& plan, Choice& choice);
};

// All kinds, by the part of the plan that they change.
std::vector<MutationKind> InstructionMutations();
std::vector<MutationKind> OperandMutations();
std::vector<MutationKind> ProgramMutations();
std::vector<MutationKind> TableMutations();
std::vector<MutationKind> ContentMutations();
std::vector<MutationKind> EventMutations();
std::vector<MutationKind> UseMutations();

// An instruction of a block that some program calls.
struct Spot {
  int block = 0;
  int instruction = 0;
};
// A random one; `block` is -1 when there is none with the property.
Spot ChooseSpot(const Plan& plan, Choice& choice, bool (*property)(const Instruction&));
std::string SpotText(const Plan& plan, const Spot& spot);

// A random instruction of the program that has the property, nullptr when there is none. The block
// becomes one of this program alone; `block` and `at` say where the instruction is.
Instruction* ChooseInProgram(Plan& plan, ProgramKind program, Choice& choice, Block** block,
                             int* at, const std::function<bool(const Instruction&)>& property);

}  // namespace planc

#endif  // PLANC_TESTS_MUTATION_MUTATIONS_H_
