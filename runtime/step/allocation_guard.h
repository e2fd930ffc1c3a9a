#ifndef PLANC_RUNTIME_STEP_ALLOCATION_GUARD_H_
#define PLANC_RUNTIME_STEP_ALLOCATION_GUARD_H_

#include <cstdint>

namespace planc {

// Heap allocations since the last reset, over all threads, by the scope of the thread that made
// them (allocation_scope.h).
struct AllocationCounts {
  int64_t step = 0;     // by our code inside a program
  int64_t library = 0;  // by Gloo, oneDNN, or the loopback wires of tests
};

// Linked into tests only: replaces malloc, and with it operator new, by versions that count.
AllocationCounts CountedAllocations();
void ResetAllocationCounts();

// False under sanitizers, which bring their own malloc: nothing is counted then.
bool AllocationsAreCounted();

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_ALLOCATION_GUARD_H_
