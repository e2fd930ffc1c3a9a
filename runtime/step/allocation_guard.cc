#include "runtime/step/allocation_guard.h"

#include <atomic>
#include <cstddef>

#include "runtime/step/allocation_scope.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLANC_COUNT_ALLOCATIONS 0
#else
#define PLANC_COUNT_ALLOCATIONS 1
#endif

namespace planc {
namespace {

std::atomic<int64_t> step_allocations{0};
std::atomic<int64_t> library_allocations{0};

}  // namespace

// Called by the replaced malloc below; must not allocate.
void CountAllocation() {
  switch (CurrentAllocationScope()) {
    case AllocationScope::kOutside:
      return;
    case AllocationScope::kStep:
      step_allocations.fetch_add(1, std::memory_order_relaxed);
      return;
    case AllocationScope::kLibrary:
      library_allocations.fetch_add(1, std::memory_order_relaxed);
      return;
  }
}

AllocationCounts CountedAllocations() {
  return {step_allocations.load(std::memory_order_relaxed),
          library_allocations.load(std::memory_order_relaxed)};
}

void ResetAllocationCounts() {
  step_allocations.store(0, std::memory_order_relaxed);
  library_allocations.store(0, std::memory_order_relaxed);
}

bool AllocationsAreCounted() { return PLANC_COUNT_ALLOCATIONS != 0; }

}  // namespace planc

#if PLANC_COUNT_ALLOCATIONS
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  planc::CountAllocation();
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  planc::CountAllocation();
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
  planc::CountAllocation();
  return __libc_realloc(memory, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  planc::CountAllocation();
  return __libc_memalign(alignment, bytes);
}

}  // extern "C"
#endif
