#ifndef PLANC_RUNTIME_STEP_ALLOCATION_SCOPE_H_
#define PLANC_RUNTIME_STEP_ALLOCATION_SCOPE_H_

namespace planc {

// On whose behalf the calling thread runs, for the test hook that counts allocations
// (allocation_guard.h). Costs two writes to thread-local memory where it is used.
enum class AllocationScope {
  kOutside,  // not inside a program: may allocate
  kStep,     // our code carrying out a program: must not allocate
  kLibrary,  // the same inside Gloo, which allocates for each message, or in wires of tests
};

// The scope of the calling thread.
inline AllocationScope& CurrentAllocationScope() {
  thread_local AllocationScope scope = AllocationScope::kOutside;
  return scope;
}

// Sets the scope of the calling thread until the end of a block.
class ScopedAllocationScope {
 public:
  explicit ScopedAllocationScope(AllocationScope scope) : previous_(CurrentAllocationScope()) {
    CurrentAllocationScope() = scope;
  }
  ~ScopedAllocationScope() { CurrentAllocationScope() = previous_; }
  ScopedAllocationScope(const ScopedAllocationScope&) = delete;
  ScopedAllocationScope& operator=(const ScopedAllocationScope&) = delete;

 private:
  AllocationScope previous_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_ALLOCATION_SCOPE_H_
