#include "runtime/checkpoint/control_agreement.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/memory_store.h"

namespace planc {
namespace {

constexpr int64_t kRanks = 3;

// What `body` returns on each rank.
std::vector<absl::Status> OnAllRanks(
    const std::function<absl::Status(int64_t rank, Agreement&)>& body) {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<absl::Status> results(kRanks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Control control(store, "test/", rank, kRanks, absl::Seconds(60));
      ControlAgreement agreement(&control);
      results[static_cast<size_t>(rank)] = body(rank, agreement);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(ControlAgreementTest, AllOkWhenAllAre) {
  const auto results = OnAllRanks([](int64_t, Agreement& agreement) {
    for (int i = 0; i < 3; ++i) {
      const absl::Status status = agreement.AllOk(absl::OkStatus());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
}

TEST(ControlAgreementTest, OneFailureReachesAll) {
  const auto results = OnAllRanks([](int64_t rank, Agreement& agreement) {
    return agreement.AllOk(rank == 0 ? absl::OkStatus() : absl::DataLossError("a file, damaged"));
  });
  for (const absl::Status& result : results) {
    EXPECT_EQ(result.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(std::string(result.message()), "rank 1: a file, damaged");
  }
}

TEST(ControlAgreementTest, DifferentValuesAreAnErrorEverywhere) {
  for (const absl::Status& result : OnAllRanks([](int64_t, Agreement& agreement) {
         return agreement.SameEverywhere("list", "1 2 3");
       })) {
    EXPECT_TRUE(result.ok()) << result;
  }
  for (const absl::Status& result : OnAllRanks([](int64_t rank, Agreement&agreement) {
         return agreement.SameEverywhere("list", rank == 2 ? "1 2" : "1 2 3");
       })) {
    EXPECT_FALSE(result.ok());
    EXPECT_THAT(std::string(result.message()), testing::HasSubstr("list"));
  }
}

}  // namespace
}  // namespace planc
