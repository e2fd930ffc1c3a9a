// What the suite for every process group does not ask of the one in shared memory. Here all members
// map it at one address, so that ThreadSanitizer sees who touches what.
#include "runtime/process_group/shared_memory_group.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/shared_exchange.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

GroupMembership MembershipOf(int64_t size, int64_t index) {
  GroupMembership membership{"dp/data", {}, index};
  for (int64_t member = 0; member < size; ++member) membership.members.push_back(10 + member);
  return membership;
}

// Runs `body` for each member, on a thread of its own.
void RunMembers(int64_t size, const std::function<void(ProcessGroup*)>& body) {
  auto first = SharedSegment::Create(SharedExchange::Bytes(size), 0);
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<std::unique_ptr<ProcessGroup>> groups(size);
  for (int64_t member = 1; member < size; ++member) {
    auto segment = (*first)->AttachHere(member);
    ASSERT_TRUE(segment.ok()) << segment.status();
    groups[member] =
        CreateSharedMemoryGroup(*std::move(segment), MembershipOf(size, member), kTimeout);
  }
  groups[0] = CreateSharedMemoryGroup(*std::move(first), MembershipOf(size, 0), kTimeout);
  std::vector<std::thread> threads;
  for (const auto& group : groups) threads.emplace_back([&] { body(group.get()); });
  for (std::thread& thread : threads) thread.join();
}

// Operations in an order and of sizes that all members draw alike: around one slot and several.
void RandomOperations(ProcessGroup* group, uint32_t seed) {
  std::mt19937 random(seed);
  const int64_t size = group->membership().size();
  const int64_t self = group->membership().index;
  constexpr int64_t kMost = 3 * SharedExchange::kSlotBytes / 4;  // elements of a chunk
  std::vector<float> x((size + 1) * kMost);
  std::vector<float> y((size + 1) * kMost);
  ASSERT_TRUE(group->RegisterMemory(x.data(), x.size() * 4).ok());
  ASSERT_TRUE(group->RegisterMemory(y.data(), y.size() * 4).ok());
  const auto value = [](int64_t member, int64_t i) {
    return static_cast<float>(member + 1 + i % 97);
  };
  for (int round = 0; round < 12; ++round) {
    const int64_t largest = int64_t{1} << (1 + random() % 18);
    const int64_t count = 1 + static_cast<int64_t>(random() % std::min(largest, kMost));
    const uint32_t operation = random() % 3;
    for (int64_t i = 0; i < size * count; ++i) x[i] = value(self, i);
    absl::Status status;
    if (operation == 0) {
      status = group->AllReduce(x.data(), count, DType::kF32, ReduceOp::kSum, nullptr);
    } else if (operation == 1) {
      status = group->ReduceScatter(x.data(), y.data(), count, DType::kF32, nullptr);
    } else {
      status = group->AllGather(x.data(), y.data(), count, DType::kF32);
    }
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t i = 0; i < count; i += 61) {
      float sum = 0;
      for (int64_t member = 0; member < size; ++member) {
        sum += value(member, operation == 1 ? self * count + i : i);
        if (operation == 2) {
          ASSERT_EQ(y[member * count + i], value(member, i)) << member << " " << i;
        }
      }
      if (operation < 2) {
        ASSERT_EQ((operation == 0 ? x : y)[i], sum) << count << " " << i;
      }
    }
  }
}

TEST(SharedMemoryGroupTest, OperationsOfManySizesFollowEachOther) {
  for (const int64_t size : {2, 3, 5}) {
    RunMembers(size, [&](ProcessGroup* group) { RandomOperations(group, 7 + size); });
  }
}

// Two members send to each other through several pieces, one after the other.
TEST(SharedMemoryGroupTest, LargeMessagesKeepTheirOrder) {
  RunMembers(2, [](ProcessGroup* group) {
    const int64_t self = group->membership().index;
    constexpr int64_t kMost = 10 * SharedExchange::kPieceBytes + 5;
    std::vector<uint8_t> memory(kMost);
    ASSERT_TRUE(group->RegisterMemory(memory.data(), kMost).ok());
    for (int64_t round = 0; round < 20; ++round) {
      const int64_t bytes = 1 + (kMost - 1) * round / 19;
      if (round % 2 == self) {
        memory.assign(kMost, static_cast<uint8_t>(round));
        ASSERT_TRUE(group->Send(1 - self, memory.data(), bytes).ok());
      } else {
        ASSERT_TRUE(group->Receive(1 - self, memory.data(), bytes).ok());
        for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], round) << i;
      }
    }
  });
}

TEST(SharedMemoryGroupTest, CallsThatDoNotBelongTogetherFailInsteadOfMixing) {
  RunMembers(2, [](ProcessGroup* group) {
    std::vector<float> x(64);
    ASSERT_TRUE(group->RegisterMemory(x.data(), 256).ok());
    const int64_t count = 1 + group->membership().index;
    const absl::Status status =
        group->AllReduce(x.data(), count, DType::kF32, ReduceOp::kSum, nullptr);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(absl::IsInternal(status) || absl::IsUnavailable(status)) << status;
    if (absl::IsInternal(status)) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("meets another call on rank 1"));
    }
    EXPECT_EQ(group->Barrier(), status) << "an error is final";
  });
}

// A peer that is gone does not take away what it has said.
TEST(SharedMemoryGroupTest, AMemberThatIsDoneMayLeaveBeforeTheOthersHaveReadItsPart) {
  RunMembers(2, [](ProcessGroup* group) {
    std::vector<float> x(8, 1.0f);
    ASSERT_TRUE(group->RegisterMemory(x.data(), 32).ok());
    if (group->membership().index == 1) absl::SleepFor(absl::Milliseconds(50));
    const absl::Status status = group->AllReduce(x.data(), 8, DType::kF32, ReduceOp::kSum, nullptr);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(x[7], 2);
    if (group->membership().index == 1) group->Abort("done");
  });
}

TEST(SharedMemoryGroupTest, TellsWhomItWaitsFor) {
  std::atomic<ProcessGroup*> first{nullptr};
  RunMembers(2, [&first](ProcessGroup* group) {
    if (group->membership().index == 0) {
      first = group;
    } else {
      while (first.load() == nullptr || first.load()->AwaitedRank() != 11) {
        std::this_thread::yield();
      }
    }
    EXPECT_TRUE(group->Barrier().ok());
    EXPECT_EQ(group->AwaitedRank(), -1);
  });
}

// Passes on another place than the first member's.
class MisleadingStore : public MemoryStore {
 public:
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override {
    const absl::StatusOr<std::string> value = MemoryStore::Get(key, timeout);
    if (!value.ok() || key != "group/memory/place") return value;
    return std::string("@1 0 12345");
  }
};

TEST(ConnectSharedMemoryGroupTest, OneMemberThatCannotReachTheMemoryIsEnoughForAll) {
  constexpr int64_t kSize = 3;
  MisleadingStore misleading;
  std::vector<std::thread> threads;
  for (int64_t member = 0; member < kSize; ++member) {
    threads.emplace_back([&, member] {
      const absl::Status status = ConnectSharedMemoryGroup("group", MembershipOf(kSize, member),
                                                           &misleading, kTimeout, kTimeout)
                                      .status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 11: "));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 12: "));
      EXPECT_THAT(std::string(status.message()), HasSubstr("group dp/data cannot share memory"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace planc
