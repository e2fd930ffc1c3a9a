#ifndef PLANC_TESTS_MUTATION_HAPPENS_BEFORE_H_
#define PLANC_TESTS_MUTATION_HAPPENS_BEFORE_H_

#include <cstdint>
#include <string>

#include "schemas/plan.h"

namespace planc {

// What is wrong with the order of a plan; each text is empty where nothing was found, else the
// first finding.
struct OrderFindings {
  std::string malformed;  // an index out of range, bytes outside of an arena, too many calls
  std::string race;       // conflicting accesses of the same bytes that nothing orders
  std::string stuck;      // a stream that never comes to its end
  // What all ranks do, in program order: operations with their attributes, bytes, streams and
  // members, and for data and initial values the microbatch and layer. Without waits and records:
  // plans without a race whose operations are equal do the same.
  std::string operations;
  bool ok() const { return malformed.empty() && race.empty() && stuck.empty(); }
};

// Happens-before, from the words of plan.h alone: shares no code and no shortcut with the verifier.
// Expands every program on every rank of the mesh, resolves every operand to bytes of an arena and
// every wait to the latest record before it in program order, lets all streams of all ranks run
// against each other (a collective starts when all members of its group are at it, a transfer when
// both ends are), and looks at each access with a vector clock for each stream. An instruction that
// accesses bytes twice does not race with itself. Never crashes on any Plan.
OrderFindings CheckHappensBefore(const Plan& plan);

}  // namespace planc

#endif  // PLANC_TESTS_MUTATION_HAPPENS_BEFORE_H_
