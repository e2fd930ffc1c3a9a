#ifndef PLANC_RUNTIME_STEP_STEP_CONTEXT_H_
#define PLANC_RUNTIME_STEP_STEP_CONTEXT_H_

#include <array>
#include <cstdint>

#include "runtime/data/token_source.h"
#include "runtime/step/prepared_instruction.h"
#include "runtime/step/schedule.h"
#include "schemas/mesh.h"
#include "schemas/plan.h"

namespace planc {

// What one run of a program needs besides the plan.
struct ProgramInputs {
  int64_t step = 0;  // optimizer step, or evaluation batch for the eval program; counts from 0
  HyperParameters hyper_parameters;
  TokenSource* tokens = nullptr;  // where load_tokens and load_targets read
  bool restoring = false;  // init only: a checkpoint fills the masters, init_parameters skips
};

// What a handler sees: one per stream, its operands and call refilled for each instruction.
struct StepContext {
  const Plan* plan = nullptr;
  Coordinates coordinates{};
  const ProgramInputs* inputs = nullptr;       // of the running program
  int layer = -1;                              // of the call
  int microbatch = -1;                         // of the call
  std::array<void*, kMaxOperands> operands{};  // addresses, in the order of opcode.def
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_STEP_CONTEXT_H_
