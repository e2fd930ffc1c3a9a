#ifndef PLANC_RUNTIME_STEP_PROFILE_TRACE_H_
#define PLANC_RUNTIME_STEP_PROFILE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/step/profile.h"
#include "schemas/plan.h"

namespace planc {

// One step of one rank in Chrome's trace event format (a JSON array; opens in Perfetto and in
// chrome://tracing). The process is the rank, with what communication costs it as its label. It has
// one thread per stream, with a slice for each instruction and for each wait of a microsecond or
// more, an arrow from the instruction that a wait was for, and one more thread with a slice for
// each interval of exposed communication. Time stamps are those of ProfileClock, so the traces of
// ranks of one machine fit together.
std::string ChromeTrace(const Plan& plan, int64_t rank, const RankProfile& profile);

// "profile-rank-3": what the files of a rank's profile in the run directory are called, without
// .json (the trace) and .txt (the table).
std::string ProfileFileStem(int64_t rank);

// One trace of several that ChromeTrace made.
std::string MergedTrace(const std::vector<std::string>& traces);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PROFILE_TRACE_H_
