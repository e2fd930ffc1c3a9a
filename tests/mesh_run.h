#ifndef PLANC_TESTS_MESH_RUN_H_
#define PLANC_TESTS_MESH_RUN_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/instruction_set.h"
#include "runtime/device/device.h"
#include "runtime/step/allocation_guard.h"
#include "runtime/step/session.h"
#include "schemas/plan.h"

namespace planc {

using Tensors = std::map<std::string, std::vector<float>>;  // whole parameters by name

// What a short training run gave, and what it took.
struct MeshRun {
  std::vector<double> losses;      // of each step
  std::vector<double> grad_norms;  // of each step
  double eval_loss = 0;            // after the last step
  Tensors first_gradients;         // clipped, from the first Adam moment after step 1
  Tensors initial_weights;
  Tensors weights;                   // after the last step
  int first_step = 0;                // steps done by the run that was resumed
  std::vector<double> token_losses;  // nats, where asked for; in the order of the global batch
  std::vector<std::string> notices;  // of the resume
  // What the device holds for the arenas of every rank, by memory kind.
  std::vector<std::array<DeviceMemory, kMemoryKindCount>> memory;
  AllocationCounts allocations;  // made inside steps after the first
  std::vector<std::string> errors;
};

struct MeshRunOptions {
  host::InstructionSet instruction_set = host::InstructionSet::kAvx2;
  // Evaluates before the first step too and keeps the loss of every token. One rank, one microbatch
  // at a time.
  bool token_losses = false;
  // Called by each rank after every step, before replicas are compared, with the steps done.
  std::function<void(const Session& session, int done)> touch = nullptr;
};

// Token `position` of sequence `sequence` of a step's global batch: a short repeating pattern with
// noise, so that there is something to learn. Below 256.
int32_t PatternToken(int64_t step, int64_t sequence, int64_t position);

// Trains until `steps` steps are done, with every rank a thread of this process, on a fixed
// pseudo-random token sequence that depends on (step, sequence within the global batch) only.
// Starts as checkpoint.resume says, `auto` looking into `directory`; losses of steps before that
// are 0. With a `directory`, writes a checkpoint there after a resume, every checkpoint.every_steps
// and at the end. After every step, all that several ranks hold alike is compared (ReplicaCheck).
MeshRun RunMesh(const Plan& plan, int steps, const std::string& directory = "",
                const MeshRunOptions& options = {});

}  // namespace planc

#endif  // PLANC_TESTS_MESH_RUN_H_
