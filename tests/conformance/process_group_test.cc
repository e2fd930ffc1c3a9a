// One suite for every ProcessGroup: what the plan's collectives mean, down to the last bit, and how
// a group fails. Members are threads; gloo's talk over TCP, those with shared memory map it once
// each, as processes do, and loopback's read each other's.

#include "runtime/process_group/process_group.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/bf16.h"
#include "runtime/process_group/gloo_group.h"
#include "runtime/process_group/loopback_group.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/shared_memory_group.h"
#include "schemas/collective.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

enum class Backend { kGloo, kSharedMemory, kLoopback };

constexpr absl::Duration kLong = absl::Seconds(60);

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// One member's arena: what it may pass to its group.
struct Arena {
  explicit Arena(int64_t bytes) : memory(bytes) {}
  template <typename T>
  T* At(int64_t offset) {
    return reinterpret_cast<T*>(memory.data() + offset);
  }
  std::vector<uint8_t> memory;
};

struct Member {
  int64_t index = 0;
  ProcessGroup* group = nullptr;
  Arena* arena = nullptr;
};

// Makes the groups of members 0..size-1, whose global ranks are 10, 11, ...
class World {
 public:
  World(Backend backend, int64_t size, absl::Duration timeout = kLong)
      : backend_(backend), size_(size), timeout_(timeout), groups_(size) {}

  // Calls `body` on one thread per member.
  void Run(int64_t arena_bytes, const std::function<void(const Member&)>& body) {
    std::vector<std::thread> threads;
    for (int64_t index = 0; index < size_; ++index) {
      threads.emplace_back([this, index, arena_bytes, &body] {
        Arena arena(arena_bytes);
        Join(index);
        // Nobody fails or leaves while others connect.
        ++joined_;
        while (joined_ < size_) std::this_thread::yield();
        if (groups_[index] != nullptr) {
          EXPECT_TRUE(groups_[index]->RegisterMemory(arena.memory.data(), arena_bytes).ok());
          body({index, groups_[index].get(), &arena});
        }
        // Nobody leaves before all are done, as at the end of a run.
        ++finished_;
        while (finished_ < size_) std::this_thread::yield();
        groups_[index].reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
    joined_ = 0;
    finished_ = 0;
  }

  // Destroys the group of one member, as its death would.
  void Kill(int64_t index) { groups_[index].reset(); }
  ProcessGroup* group(int64_t index) { return groups_[index].get(); }

 private:
  void Join(int64_t index) {
    GroupMembership membership{"tp/compute", {}, index};
    for (int64_t member = 0; member < size_; ++member) membership.members.push_back(10 + member);
    if (backend_ == Backend::kLoopback) {
      groups_[index] = loopback_.Join("wires", membership, timeout_);
      return;
    }
    if (backend_ == Backend::kSharedMemory) {
      auto group = ConnectSharedMemoryGroup("test", membership, &store_, kLong, timeout_);
      ASSERT_TRUE(group.ok()) << group.status();
      groups_[index] = *std::move(group);
      return;
    }
    auto network = GlooNetwork::Create("127.0.0.1", "the secret of tests");
    ASSERT_TRUE(network.ok()) << network.status();
    auto groups = (*network)->Connect("test", {membership}, &store_, kLong, timeout_);
    ASSERT_TRUE(groups.ok()) << groups.status();
    groups_[index] = std::move(groups->front());
  }

  const Backend backend_;
  const int64_t size_;
  const absl::Duration timeout_;
  MemoryStore store_;
  LoopbackWorld loopback_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;
  std::atomic<int64_t> joined_{0};
  std::atomic<int64_t> finished_{0};
};

// Member `member`'s element i: many magnitudes and signs, so that the order of a sum shows in its
// bits.
float Value(int64_t member, int64_t i) {
  uint64_t bits = static_cast<uint64_t>(member * 7919 + i + 1) * 0x9e3779b97f4a7c15u;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9u;
  bits ^= bits >> 32;
  const float mantissa = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-31f;
  return std::ldexp(mantissa, static_cast<int>((bits >> 40) % 24) - 12);
}

template <typename T>
struct Numbers;
template <>
struct Numbers<float> {
  static constexpr DType kDType = DType::kF32;
  using Sum = float;
  static float From(double value) { return static_cast<float>(value); }
  static float To(float value) { return value; }
};
template <>
struct Numbers<double> {
  static constexpr DType kDType = DType::kF64;
  using Sum = double;
  static double From(double value) { return value; }
  static double To(double value) { return value; }
};
template <>
struct Numbers<Bf16> {
  static constexpr DType kDType = DType::kBF16;
  using Sum = float;
  static Bf16 From(double value) { return ToBf16(static_cast<float>(value)); }
  static float To(Bf16 value) { return ToFloat(value); }
};

template <typename T>
T Input(int64_t member, int64_t i) {
  return Numbers<T>::From(Value(member, i));
}

template <typename T>
T ExpectedSum(int64_t size, int64_t i) {
  typename Numbers<T>::Sum sum = Numbers<T>::To(Input<T>(0, i));
  for (int64_t member = 1; member < size; ++member) sum += Numbers<T>::To(Input<T>(member, i));
  return Numbers<T>::From(sum);
}

template <typename T>
bool SameBits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

struct Case {
  Backend backend;
  int64_t size;
};

class ProcessGroupTest : public ::testing::TestWithParam<Case> {
 protected:
  Backend backend() const { return GetParam().backend; }
  int64_t size() const { return GetParam().size; }
};

template <typename T>
void TestAllReduce(Backend backend, int64_t size, int64_t count) {
  const int64_t bytes = count * sizeof(T);
  const int64_t scratch = AllReduceScratchBytes(count, size, sizeof(T));
  World world(backend, size);
  world.Run(bytes + 64 + scratch + 1, [&](const Member& member) {
    T* const x = member.arena->At<T>(0);
    void* const scratch_at = member.arena->At<void>(bytes + (64 - bytes % 64));
    uint8_t& guard = member.arena->memory[bytes + (64 - bytes % 64) + scratch];
    guard = 0xab;
    for (int64_t i = 0; i < count; ++i) x[i] = Input<T>(member.index, i);
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (int64_t i = 0; i < count; ++i) x[i] = Input<T>(member.index, i);
      const absl::Status status =
          member.group->AllReduce(x, count, Numbers<T>::kDType, ReduceOp::kSum, scratch_at);
      ASSERT_TRUE(status.ok()) << status;
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_TRUE(SameBits(x[i], ExpectedSum<T>(size, i))) << "element " << i << " of " << count;
      }
    }
    EXPECT_EQ(guard, 0xab) << "wrote past the scratch";
  });
}

TEST_P(ProcessGroupTest, AllReduceSumsInMemberOrder) {
  // One element; odd; fewer elements than members in a chunked exchange is covered by the dtype
  // bound; the last direct size, the first chunked one; large and odd.
  for (const int64_t count : {1, 3, 1001, 4096, 4097, 100'003}) {
    TestAllReduce<float>(backend(), size(), count);
  }
  for (const int64_t count : {2, 8192, 8193, 50'001}) TestAllReduce<Bf16>(backend(), size(), count);
  for (const int64_t count : {1, 2048, 2049, 7777}) TestAllReduce<double>(backend(), size(), count);
}

TEST_P(ProcessGroupTest, AllReduceMaximumKeepsNaN) {
  for (const int64_t count : {5, 20'001}) {
    World world(backend(), size());
    world.Run(count * 4 * (size() + 1), [&](const Member& member) {
      float* const x = member.arena->At<float>(0);
      for (int64_t i = 0; i < count; ++i) x[i] = Value(member.index, i);
      if (member.index == size() - 1) x[2] = std::numeric_limits<float>::quiet_NaN();
      ASSERT_TRUE(
          member.group
              ->AllReduce(x, count, DType::kF32, ReduceOp::kMax, member.arena->At<void>(count * 4))
              .ok());
      for (int64_t i = 0; i < count; ++i) {
        float expected = Value(0, i);
        for (int64_t m = 1; m < size(); ++m) expected = std::max(expected, Value(m, i));
        if (i == 2) {
          EXPECT_TRUE(std::isnan(x[i]));
        } else {
          ASSERT_EQ(x[i], expected) << i;
        }
      }
    });
  }
}

template <typename T>
void TestReduceScatter(Backend backend, int64_t size, int64_t count, bool in_place) {
  const int64_t all = size * count * static_cast<int64_t>(sizeof(T));
  World world(backend, size);
  world.Run(all * 3 + 64, [&](const Member& member) {
    T* const x = member.arena->At<T>(0);
    T* const y = in_place ? x + member.index * count : member.arena->At<T>(all);
    for (int64_t i = 0; i < size * count; ++i) x[i] = Input<T>(member.index, i);
    const absl::Status status = member.group->ReduceScatter(x, y, count, Numbers<T>::kDType,
                                                            member.arena->At<void>(all * 2));
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t i = 0; i < count; ++i) {
      const T expected = ExpectedSum<T>(size, member.index * count + i);
      ASSERT_TRUE(SameBits(y[i], expected)) << "element " << i;
    }
  });
}

TEST_P(ProcessGroupTest, ReduceScatterSumsInMemberOrder) {
  for (const bool in_place : {false, true}) {
    for (const int64_t count : {1, 129, 30'001}) {
      TestReduceScatter<float>(backend(), size(), count, in_place);
      TestReduceScatter<Bf16>(backend(), size(), count, in_place);
    }
  }
}

TEST_P(ProcessGroupTest, AllGatherInMemberOrder) {
  for (const bool in_place : {false, true}) {
    for (const int64_t count : {1, 129, 30'001}) {
      World world(backend(), size());
      world.Run((size() + 1) * count * 2, [&](const Member& member) {
        Bf16* const y = member.arena->At<Bf16>(0);
        Bf16* const x = in_place ? y + member.index * count : y + size() * count;
        for (int64_t i = 0; i < count; ++i) x[i] = Input<Bf16>(member.index, i);
        const absl::Status status = member.group->AllGather(x, y, count, DType::kBF16);
        ASSERT_TRUE(status.ok()) << status;
        for (int64_t m = 0; m < size(); ++m) {
          for (int64_t i = 0; i < count; ++i) {
            ASSERT_TRUE(SameBits(y[m * count + i], Input<Bf16>(m, i))) << m << " " << i;
          }
        }
      });
    }
  }
}

TEST_P(ProcessGroupTest, MessagesAroundTheRingKeepTheirOrder) {
  if (size() == 1) GTEST_SKIP() << "a single member has no peer";
  constexpr int64_t kMessages = 50;
  World world(backend(), size());
  world.Run(2 * 40'000, [&](const Member& member) {
    uint8_t* const buffer = member.arena->At<uint8_t>(0);
    const int64_t next = (member.index + 1) % size();
    const int64_t previous = (member.index + size() - 1) % size();
    for (int64_t i = 0; i < kMessages; ++i) {
      const int64_t bytes = 1 + i * 797;
      const auto send = [&] {
        std::memset(buffer, static_cast<int>(i + member.index), bytes);
        ASSERT_TRUE(member.group->Send(next, buffer, bytes).ok());
      };
      // Someone must receive first: a send ends only with its receive.
      if (member.index != 0) send();
      ASSERT_TRUE(member.group->Receive(previous, buffer + 40'000, bytes).ok());
      for (int64_t byte = 0; byte < bytes; ++byte) {
        ASSERT_EQ(buffer[40'000 + byte], static_cast<uint8_t>(i + previous)) << i;
      }
      if (member.index == 0) send();
    }
  });
}

TEST_P(ProcessGroupTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  World world(backend(), size());
  std::atomic<int64_t> arrived{0};
  world.Run(64, [&](const Member& member) {
    for (int64_t round = 1; round <= 20; ++round) {
      ++arrived;
      ASSERT_TRUE(member.group->Barrier().ok());
      EXPECT_GE(arrived.load(), round * size());
    }
  });
}

TEST_P(ProcessGroupTest, DifferentOperationsFollowEachOther) {
  World world(backend(), size());
  world.Run(64 * 1024, [&](const Member& member) {
    float* const x = member.arena->At<float>(0);
    float* const y = member.arena->At<float>(4096);
    void* const scratch = member.arena->At<void>(8192);
    for (int round = 0; round < 100; ++round) {
      x[0] = static_cast<float>(member.index + round);
      ASSERT_TRUE(member.group->AllReduce(x, 1, DType::kF32, ReduceOp::kSum, scratch).ok());
      ASSERT_EQ(x[0], size() * round + size() * (size() - 1) / 2);
      ASSERT_TRUE(member.group->AllGather(x, y, 1, DType::kF32).ok());
      ASSERT_EQ(y[size() - 1], x[0]);
      ASSERT_TRUE(member.group->Barrier().ok());
    }
  });
}

TEST_P(ProcessGroupTest, RefusesWhatItCannotDo) {
  World world(backend(), size());
  world.Run(256, [&](const Member& member) {
    int32_t* const x = member.arena->At<int32_t>(0);
    EXPECT_EQ(member.group->AllReduce(x, 1, DType::kI32, ReduceOp::kSum, x + 8).code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(member.group->Send(member.index, x, 4).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(member.group->Receive(size(), x, 4).code(), absl::StatusCode::kInvalidArgument);
    if (size() == 1) return;
    float elsewhere = 0;
    const absl::Status status = member.group->Send((member.index + 1) % size(), &elsewhere, 4);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr("not registered"));
  });
}

TEST_P(ProcessGroupTest, AbortWakesABlockedMember) {
  if (size() == 1) GTEST_SKIP() << "a single member never blocks";
  World world(backend(), size());
  std::atomic<int64_t> aborted{0};
  world.Run(1024, [&](const Member& member) {
    if (member.index == 0) {  // never comes; its watchdog fires
      absl::SleepFor(absl::Milliseconds(50));
      member.group->Abort("the watchdog fired");
      ++aborted;
      const absl::Status status = member.group->Barrier();
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      EXPECT_THAT(MessageOf(status), HasSubstr("the watchdog fired"));
      return;
    }
    float* const x = member.arena->At<float>(0);
    const absl::Status status = member.group->AllReduce(x, 1, DType::kF32, ReduceOp::kSum, x + 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr("tp/compute"));
    EXPECT_THAT(MessageOf(status), HasSubstr("all_reduce"));
    EXPECT_EQ(member.group->Barrier(), status) << "an error is final";
  });
  EXPECT_EQ(aborted, 1);
}

TEST_P(ProcessGroupTest, AbortFromAnotherThreadIsTheReasonOfTheOwnCall) {
  if (size() == 1) GTEST_SKIP() << "a single member never blocks";
  World world(backend(), size());
  world.Run(1024, [&](const Member& member) {
    if (member.index != 0) return;
    std::thread watchdog([&] {
      absl::SleepFor(absl::Milliseconds(50));
      member.group->Abort("stuck for too long");
    });
    const absl::Status status = member.group->Receive(1, member.arena->At<void>(0), 8);
    watchdog.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr("receive"));
    EXPECT_THAT(MessageOf(status), HasSubstr("stuck for too long"));
  });
}

TEST_P(ProcessGroupTest, TheDeathOfAPeerNamesIt) {
  if (size() == 1) GTEST_SKIP() << "a single member has no peer";
  World world(backend(), size());
  std::atomic<int64_t> failed{0};
  world.Run(4096, [&](const Member& member) {
    ASSERT_TRUE(member.group->Barrier().ok());
    if (member.index == 1) {
      world.Kill(1);
      return;
    }
    float* const x = member.arena->At<float>(0);
    absl::Status status = absl::OkStatus();
    status = member.group->AllReduce(x, 4, DType::kF32, ReduceOp::kSum, x + 64);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    // With more members another survivor may have hung up first: it is then named as well.
    if (size() == 2) {
      EXPECT_THAT(MessageOf(status), HasSubstr("lost the connection to rank 11"));
    }
    EXPECT_THAT(MessageOf(status), HasSubstr("all_reduce on rank 1"));
    ++failed;
  });
  EXPECT_EQ(failed, size() - 1);
}

TEST_P(ProcessGroupTest, AMemberThatDoesNotComeIsNamedAfterTheTimeout) {
  if (size() == 1) GTEST_SKIP() << "a single member waits for nobody";
  World world(backend(), size(), absl::Milliseconds(300));
  world.Run(4096, [&](const Member& member) {
    if (member.index == 1) return;
    float* const x = member.arena->At<float>(0);
    const absl::Status status = member.group->AllReduce(x, 4, DType::kF32, ReduceOp::kSum, x + 64);
    // With more members, one may learn of the time-out by another's hanging up.
    EXPECT_TRUE(status.code() == absl::StatusCode::kDeadlineExceeded ||
                (size() > 2 && status.code() == absl::StatusCode::kUnavailable))
        << status;
    if (absl::IsDeadlineExceeded(status)) {
      EXPECT_THAT(MessageOf(status), HasSubstr("no answer from rank 11 for"));
    }
  });
}

std::string NameOf(Backend backend) {
  if (backend == Backend::kLoopback) return "Loopback";
  return backend == Backend::kGloo ? "Gloo" : "SharedMemory";
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Backend backend : {Backend::kGloo, Backend::kSharedMemory, Backend::kLoopback}) {
    for (const int64_t size : {1, 2, 3, 4, 5, 8}) cases.push_back({backend, size});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, ProcessGroupTest, ::testing::ValuesIn(AllCases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return absl::StrCat(NameOf(info.param.backend), info.param.size);
                         });

}  // namespace
}  // namespace planc
