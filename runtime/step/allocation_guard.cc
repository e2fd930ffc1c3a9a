#include "runtime/step/allocation_guard.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "runtime/step/allocation_scope.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLANC_COUNT_ALLOCATIONS 0
#else
#define PLANC_COUNT_ALLOCATIONS 1
#endif

namespace planc {
namespace {

constexpr int kKinds = 3;
constexpr int kScopes = 3;

// By scope, then by kind.
std::array<std::array<std::atomic<int64_t>, kKinds>, kScopes> counters{};

KindCounts CountsOf(AllocationScope scope) {
  const auto& counted = counters[static_cast<int>(scope)];
  return {counted[0].load(), counted[1].load(), counted[2].load()};
}

}  // namespace

// Called by the replaced functions below; must not allocate.
void CountAllocation(AllocationKind kind) {
  counters[static_cast<int>(CurrentAllocationScope())][static_cast<int>(kind)].fetch_add(1);
}

AllocationCounts CountedAllocations() {
  return {CountsOf(AllocationScope::kStep), CountsOf(AllocationScope::kLibrary),
          CountsOf(AllocationScope::kOutside)};
}

void ResetAllocationCounts() {
  for (auto& scope : counters) {
    for (std::atomic<int64_t>& counter : scope) counter.store(0);
  }
}

bool AllocationsAreCounted() { return PLANC_COUNT_ALLOCATIONS != 0; }

}  // namespace planc

#if PLANC_COUNT_ALLOCATIONS
namespace {

using planc::AllocationKind;
using planc::CountAllocation;

void* CountedMap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  CountAllocation(AllocationKind::kMapping);
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

}  // namespace

// The names by which programs and shared libraries find these functions lead here. Within glibc
// itself calls between its parts do not: an mmap of malloc is part of a malloc that was counted,
// the stack of a thread part of a pthread_create.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void* __libc_valloc(size_t bytes);
void* __libc_pvalloc(size_t bytes);
void* __sbrk(intptr_t increment);

void* malloc(size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_realloc(memory, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_memalign(alignment, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  const bool power_of_two = (alignment & (alignment - 1)) == 0;
  if (alignment == 0 || alignment % sizeof(void*) != 0 || !power_of_two) return EINVAL;
  void* const found = __libc_memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

void* valloc(size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_valloc(bytes);
}

void* pvalloc(size_t bytes) {
  CountAllocation(AllocationKind::kHeap);
  return __libc_pvalloc(bytes);
}

void* sbrk(intptr_t increment) {
  CountAllocation(AllocationKind::kMapping);
  return __sbrk(increment);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return CountedMap(address, bytes, protection, flags, file, offset);
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return CountedMap(address, bytes, protection, flags, file, offset);
}

void* mremap(void* address, size_t old_bytes, size_t bytes, int flags, ...) {
  CountAllocation(AllocationKind::kMapping);
  va_list more;
  va_start(more, flags);
  void* const wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  return reinterpret_cast<void*>(syscall(SYS_mremap, address, old_bytes, bytes, flags, wanted));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  CountAllocation(AllocationKind::kThread);
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, body, argument);
}

}  // extern "C"
#endif
