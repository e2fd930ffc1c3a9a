#ifndef PLANC_RUNTIME_STEP_PROFILE_SUMMARY_H_
#define PLANC_RUNTIME_STEP_PROFILE_SUMMARY_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/step/machine_rates.h"
#include "runtime/step/op_family.h"
#include "runtime/step/profile.h"
#include "runtime/step/time_intervals.h"
#include "schemas/opcode.h"
#include "schemas/plan.h"

namespace planc {

// Sums over instructions of one rank.
struct OpTotal {
  int64_t calls = 0;
  int64_t nanoseconds = 0;  // of running, not of waiting for events
  double flops = 0;
  double bytes = 0;                 // read and written
  double product_seconds = 0;       // flops over the rate of products of that type
  double floor_seconds = 0;         // sum of FloorSeconds
  int64_t bytes_sent = 0;           // to other ranks
  int64_t sending_nanoseconds = 0;  // of the calls that send
};

// Where the time of one stream went, from reaching its first instruction to the end of its last.
struct StreamTotal {
  int64_t instructions = 0;
  int64_t dropped = 0;  // earlier instructions that the profile did not hold
  int64_t nanoseconds = 0;
  int64_t busy = 0;      // running instructions
  int64_t waiting = 0;   // for events
  int64_t dispatch = 0;  // the rest: between two instructions
  // Of one instruction. The mean also holds what other threads take from the core.
  int64_t median_dispatch = 0;
  std::array<OpTotal, kOpcodeCount> opcodes;
};

// Time in which at least one communicating instruction ran.
struct CommunicationTotal {
  OpTotal sum;
  int64_t running = 0;  // instructions at the same time count once
  int64_t exposed = 0;  // of that, while no stream of this rank computed
};

// One step of one rank, in nanoseconds.
struct ProfileSummary {
  int64_t begin = 0;  // of ProfileClock; the first stream reached its first instruction
  int64_t end = 0;    // the last instruction of any stream was done
  std::array<StreamTotal, kStreamCount> streams;
  std::array<OpTotal, kOpFamilyCount> families;  // over all streams
  std::map<std::string, OpTotal> products;       // by MatmulShapeText of kernels/matmul.h
  double floor_seconds = 0;                      // of all families
  CommunicationTotal communication;
  std::vector<CommunicationTotal> groups;  // as in Plan::groups
  std::vector<TimeInterval> exposed;       // intervals of communication.exposed

  int64_t nanoseconds() const { return end - begin; }
};

// The least seconds that an instruction can take on a machine of these rates: its operations at the
// rate of large products of its type, or its bytes at the rate of memory, whichever is more. 0 for
// communication, whose limit is another rank. Operands that lie in a cache can be faster.
double FloorSeconds(const Plan& plan, const Instruction& instruction, const MachineRates& rates);

ProfileSummary SummaryOf(const Plan& plan, const RankProfile& profile, const MachineRates& rates);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PROFILE_SUMMARY_H_
