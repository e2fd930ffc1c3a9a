#include "runtime/process_group/cancellable_store.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/memory_store.h"

namespace planc {
namespace {

TEST(CancellableStore, WaitsAsTheStoreBehindIt) {
  const auto memory = std::make_shared<MemoryStore>();
  CancellableStore store(memory);
  EXPECT_EQ(store.Get("a", absl::ZeroDuration()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.Get("a", absl::Milliseconds(10)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  std::thread setter([&] {
    absl::SleepFor(absl::Milliseconds(700));  // longer than one of the waits a wait is made of
    EXPECT_TRUE(memory->Set("a", "value").ok());
  });
  const auto got = store.Get("a", absl::Minutes(5));
  setter.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "value");
}

TEST(CancellableStore, CancelEndsAWait) {
  CancellableStore store(std::make_shared<MemoryStore>());
  std::thread canceller([&] {
    absl::SleepFor(absl::Milliseconds(50));
    store.Cancel();
  });
  const absl::Time begin = absl::Now();
  EXPECT_EQ(store.Get("a", absl::Minutes(5)).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
  canceller.join();
  EXPECT_EQ(store.Set("a", "value").code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace planc
