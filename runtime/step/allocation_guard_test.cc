#include "runtime/step/allocation_guard.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "kernels/parallel.h"
#include "runtime/step/allocation_scope.h"

namespace planc {
namespace {

constexpr size_t kPage = 4096;

// Keeps a compiler from leaving out an allocation that nobody reads.
void* volatile seen;
void Use(void* memory) { seen = memory; }

struct Way {
  const char* name;
  AllocationKind kind;
  void (*allocate)();
};

struct alignas(128) Aligned {
  char bytes[256];
};

const Way kWays[] = {
    {"malloc", AllocationKind::kHeap,
     [] {
       Use(malloc(100));
       free(seen);
     }},
    {"calloc", AllocationKind::kHeap,
     [] {
       Use(calloc(10, 10));
       free(seen);
     }},
    {"realloc", AllocationKind::kHeap,
     [] {
       Use(realloc(nullptr, 100));
       free(seen);
     }},
    {"reallocarray", AllocationKind::kHeap,
     [] {
       Use(reallocarray(nullptr, 10, 10));
       free(seen);
     }},
    {"posix_memalign", AllocationKind::kHeap,
     [] {
       void* memory = nullptr;
       EXPECT_EQ(posix_memalign(&memory, 64, 100), 0);
       EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
       free(memory);
     }},
    {"aligned_alloc", AllocationKind::kHeap,
     [] {
       Use(aligned_alloc(64, 128));
       free(seen);
     }},
    {"memalign", AllocationKind::kHeap,
     [] {
       Use(memalign(64, 100));
       free(seen);
     }},
    {"valloc", AllocationKind::kHeap,
     [] {
       Use(valloc(100));
       free(seen);
     }},
    {"pvalloc", AllocationKind::kHeap,
     [] {
       Use(pvalloc(100));
       free(seen);
     }},
    {"new", AllocationKind::kHeap, [] { Use(std::make_unique<int>(1).get()); }},
    {"aligned_new", AllocationKind::kHeap, [] { Use(std::make_unique<Aligned>().get()); }},
    {"nothrow_new", AllocationKind::kHeap,
     [] {
       int* const value = new (std::nothrow) int(1);
       Use(value);
       delete value;
     }},
    {"within_the_c_library", AllocationKind::kHeap,
     [] {
       Use(strdup("text"));
       free(seen);
     }},
    {"within_the_cpp_library", AllocationKind::kHeap,
     [] { Use(std::make_unique<std::string>(std::to_string(1) + std::string(99, 'x')).get()); }},
    {"mmap", AllocationKind::kMapping,
     [] {
       Use(mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
       EXPECT_EQ(munmap(seen, kPage), 0);
     }},
    {"mmap64", AllocationKind::kMapping,
     [] {
       Use(mmap64(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
       EXPECT_EQ(munmap(seen, kPage), 0);
     }},
    {"mremap", AllocationKind::kMapping,
     [] {
       Use(mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
       Use(mremap(seen, kPage, 2 * kPage, MREMAP_MAYMOVE));
       EXPECT_EQ(munmap(seen, 2 * kPage), 0);
     }},
    {"sbrk", AllocationKind::kMapping, [] { Use(sbrk(0)); }},
    {"thread", AllocationKind::kThread, [] { std::thread([] {}).join(); }},
};

int64_t Count(const KindCounts& counts, AllocationKind kind) {
  switch (kind) {
    case AllocationKind::kHeap:
      return counts.heap;
    case AllocationKind::kMapping:
      return counts.mappings;
    case AllocationKind::kThread:
      return counts.threads;
  }
  return 0;
}

class AllocationGuardTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!AllocationsAreCounted()) GTEST_SKIP() << "a sanitizer owns malloc";
  }
};

TEST_P(AllocationGuardTest, SeesItInAStep) {
  ResetAllocationCounts();
  {
    const ScopedAllocationScope step(AllocationScope::kStep);
    GetParam().allocate();
  }
  EXPECT_GE(Count(CountedAllocations().step, GetParam().kind), 1);
  EXPECT_EQ(CountedAllocations().library.sum(), 0);
}

TEST_P(AllocationGuardTest, SeesItInALibrary) {
  ResetAllocationCounts();
  {
    const ScopedAllocationScope library(AllocationScope::kLibrary);
    GetParam().allocate();
  }
  EXPECT_GE(Count(CountedAllocations().library, GetParam().kind), 1);
  EXPECT_EQ(CountedAllocations().step.sum(), 0);
}

TEST_P(AllocationGuardTest, SeesItInAnotherThread) {
  int64_t counted = -1;
  std::thread([&counted] {
    ResetAllocationCounts();
    GetParam().allocate();
    counted = Count(CountedAllocations().other, GetParam().kind);
  }).join();
  EXPECT_GE(counted, 1);
}

TEST_P(AllocationGuardTest, SeesItInAWorkerOfAKernel) {
  const ScopedAllocationScope step(AllocationScope::kStep);
  const std::thread::id caller = std::this_thread::get_id();
  const auto allocate_in_worker = [caller](int64_t, int64_t) {
    if (std::this_thread::get_id() != caller) GetParam().allocate();
  };
  host::ParallelFor(2, 2, 1, allocate_in_worker);  // starts the worker
  ResetAllocationCounts();
  host::ParallelFor(2, 2, 1, allocate_in_worker);
  EXPECT_GE(Count(CountedAllocations().other, GetParam().kind), 1);
  EXPECT_EQ(CountedAllocations().step.sum(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, AllocationGuardTest, testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

// A team whose size changes would make OpenMP start and end threads, and allocate.
TEST(ParallelForTest, WorkOfAnySizeAllocatesNothing) {
  if (!AllocationsAreCounted()) GTEST_SKIP() << "a sanitizer owns malloc";
  int64_t covered = 0;
  const auto run_all = [&covered] {
    for (const int64_t items : {8, 3, 5, 1, 2, 4, 6, 7}) {
      int64_t done[8] = {};
      host::ParallelFor(8, items, 1, [&done](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++done[i];
      });
      for (const int64_t times : done) covered += times;
    }
  };
  run_all();
  ResetAllocationCounts();
  run_all();
  EXPECT_EQ(CountedAllocations().sum(), 0);
  EXPECT_EQ(covered, 2 * 36);
}

}  // namespace
}  // namespace planc
