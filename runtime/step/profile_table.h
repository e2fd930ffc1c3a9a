#ifndef PLANC_RUNTIME_STEP_PROFILE_TABLE_H_
#define PLANC_RUNTIME_STEP_PROFILE_TABLE_H_

#include <string>

#include "runtime/step/machine_rates.h"
#include "runtime/step/profile.h"
#include "schemas/plan.h"

namespace planc {

// One step of one rank as text: by op family, calls, seconds, share of the step, GFLOP/s, GB/s, the
// floor (FloorSeconds of profile_summary.h) and how far the family is from it; what the compute
// stream spent waiting and dispatching; products by shape; communication by group with the part
// that no computation hides; then, per stream, the same columns by opcode.
//
// GB/s of communication is bytes sent over the time of the instructions that send, what nccl-tests
// calls busbw.
std::string ProfileTable(const Plan& plan, const RankProfile& profile, const MachineRates& rates);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PROFILE_TABLE_H_
