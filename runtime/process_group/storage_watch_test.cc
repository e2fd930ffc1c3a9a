#include "runtime/process_group/storage_watch.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/control.h"
#include "runtime/process_group/memory_store.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

// Two ranks of one job, as threads.
class StorageWatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<StorageWatch> Watch(int64_t rank,
                                      absl::Duration patience = absl::Milliseconds(5)) {
    StorageWatch::Options options;
    options.connect = [this]() -> absl::StatusOr<std::shared_ptr<KeyValueStore>> { return store_; };
    options.prefix = "job";
    options.rank = rank;
    options.patience = {patience, patience};
    return std::make_unique<StorageWatch>(std::move(options));
  }

  static std::string AwaitTold(StorageWatch* watch, StorageUse use, StorageWatch::Reader* reader) {
    std::string told;
    while (told.empty()) {
      absl::SleepFor(absl::Milliseconds(1));
      told = watch->Told(use, reader);
    }
    return told;
  }

  std::shared_ptr<KeyValueStore> store_ = std::make_shared<MemoryStore>();
  StorageWatch::Reader reader_;
};

TEST_F(StorageWatchTest, ACallThatTakesLongIsTold) {
  const auto here = Watch(0);
  const auto there = Watch(1);
  {
    const StorageWatch::Call call(here.get(), StorageUse::kForeground, "sync of saved/x");
    EXPECT_THAT(AwaitTold(there.get(), StorageUse::kForeground, &reader_),
                HasSubstr("rank 0: sync of saved/x has taken "));
    AwaitTold(there.get(), StorageUse::kForeground, &reader_);  // and again
    EXPECT_EQ(there->Told(StorageUse::kBackground, &reader_), "");
  }
}

TEST_F(StorageWatchTest, RanksTellSideBySide) {
  const auto first = Watch(0);
  const auto second = Watch(1);
  const auto reader = Watch(2);
  const StorageWatch::Call one(first.get(), StorageUse::kBackground, "sync of a");
  const StorageWatch::Call two(second.get(), StorageUse::kBackground, "sync of b");
  bool seen_first = false;
  bool seen_second = false;
  while (!seen_first || !seen_second) {
    const std::string told = AwaitTold(reader.get(), StorageUse::kBackground, &reader_);
    seen_first = seen_first || told.find("rank 0: sync of a") == 0;
    seen_second = seen_second || told.find("rank 1: sync of b") == 0;
  }
}

TEST_F(StorageWatchTest, ShortCallsAreNotTold) {
  const auto here = Watch(0, absl::Hours(1));
  for (int i = 0; i < 100; ++i) {
    const StorageWatch::Call call(here.get(), StorageUse::kBackground, "write of x");
  }
  EXPECT_EQ(here->Told(StorageUse::kBackground, &reader_), "");
  const StorageWatch::Call nobody(nullptr, StorageUse::kBackground, "nothing watches");
}

// A wait of the others goes on while rank 0 is held up by its disk, and ends when it comes.
TEST_F(StorageWatchTest, AWaitForARankInStorageGoesOn) {
  const auto here = Watch(0);
  StorageWatch::Options options;
  options.connect = [this]() -> absl::StatusOr<std::shared_ptr<KeyValueStore>> {
    EXPECT_TRUE(store_->Set("asked", "").ok());
    return store_;
  };
  options.prefix = "job";
  options.patience = {absl::Milliseconds(5), absl::Milliseconds(5)};
  const auto there = std::make_unique<StorageWatch>(std::move(options));
  Control waiting(store_, "job", 1, 2, absl::Milliseconds(250));
  waiting.ExcuseBy(there.get(), /*background=*/true);
  absl::StatusOr<std::string> got = absl::UnknownError("not yet");
  std::thread waiter([&] { got = waiting.Broadcast("commit", ""); });
  {
    const StorageWatch::Call call(here.get(), StorageUse::kBackground, "sync of saved/x");
    // Until the waiter has asked, which it does when the time of its wait is over, and has been
    // told.
    while (store_->Get("asked", absl::ZeroDuration()).status().code() != absl::StatusCode::kOk) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    Control coming(store_, "job", 0, 2, absl::Milliseconds(250));
    ASSERT_TRUE(coming.Broadcast("commit", "done").ok());
    waiter.join();
  }
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "done");
}

// The disk does not come back: who waits says what the lost rank was doing.
TEST_F(StorageWatchTest, AWaitThatIsGivenUpNamesTheFile) {
  const auto there = Watch(1);
  {
    const auto here = Watch(0);
    const StorageWatch::Call call(here.get(), StorageUse::kForeground, "sync of saved/x");
    AwaitTold(Watch(2).get(), StorageUse::kForeground, &reader_);
  }  // told, and then never again
  Control waiting(store_, "job", 1, 2, absl::Milliseconds(5));
  waiting.ExcuseBy(there.get(), /*background=*/false);
  const absl::StatusOr<std::string> got = waiting.Broadcast("commit", "");
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(got.status().message()),
              HasSubstr("storage: rank 0: sync of saved/x has taken"));
  const auto fresh = Watch(2);
  Control gathering(store_, "job", 0, 2, absl::Milliseconds(5));
  gathering.ExcuseBy(fresh.get(), /*background=*/true);
  EXPECT_THAT(std::string(gathering.Gather("commit", "").status().message()),
              HasSubstr("storage: rank 0: sync of saved/x has taken"));
}

}  // namespace
}  // namespace planc
