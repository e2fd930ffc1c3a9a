#ifndef PLANC_RUNTIME_STEP_ALLOCATION_GUARD_H_
#define PLANC_RUNTIME_STEP_ALLOCATION_GUARD_H_

#include <cstdint>

namespace planc {

enum class AllocationKind {
  kHeap,     // malloc and its family, with them operator new
  kMapping,  // mmap, mremap, sbrk
  kThread,   // pthread_create, which maps a stack
};

struct KindCounts {
  int64_t heap = 0;
  int64_t mappings = 0;
  int64_t threads = 0;

  int64_t sum() const { return heap + mappings + threads; }
};

// Allocations of this process since the last reset, by all threads and all libraries, by the scope
// (allocation_scope.h) of the thread that made them.
struct AllocationCounts {
  KindCounts step;     // carrying out a program
  KindCounts library;  // carrying out a program, inside Gloo or the loopback wires of tests
  KindCounts other;    // every other thread: OpenMP workers, Gloo's, the watchdog's, the main one

  int64_t sum() const { return step.sum() + library.sum() + other.sum(); }
};

// Linked into tests only: replaces the functions of AllocationKind by versions that count. It does
// not see system calls that are made without glibc's functions.
AllocationCounts CountedAllocations();
void ResetAllocationCounts();

// False under sanitizers, which bring their own malloc: nothing is counted then.
bool AllocationsAreCounted();

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_ALLOCATION_GUARD_H_
