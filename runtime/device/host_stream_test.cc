#include "runtime/device/host_stream.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/device/abort_signal.h"

namespace planc {
namespace {

TEST(EventCounterTest, WaitSeesWhatWasWrittenBeforeTheRecord) {
  EventCounter cell;
  int value = 0;
  std::thread writer([&] {
    for (int i = 1; i <= 1000; ++i) {
      value = i;  // nobody reads before the last record
      cell.Record();
    }
  });
  EXPECT_TRUE(cell.WaitFor(1000));
  EXPECT_EQ(value, 1000);
  writer.join();
  EXPECT_EQ(cell.count(), 1000u);
}

TEST(EventCounterTest, ZeroRecordsAreNothingToWaitFor) {
  EventCounter cell;
  EXPECT_TRUE(cell.WaitFor(0));
}

TEST(EventCounterTest, ResetStartsOver) {
  EventCounter cell;
  cell.Record();
  cell.Reset();
  EXPECT_EQ(cell.count(), 0u);
}

TEST(EventCellsTest, AbortWakesEveryWaiterAndStaysAborted) {
  AbortSignal abort;
  EventCells cells(3, &abort);
  std::atomic<int> woken{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&cells, &woken, i] {
      if (!cells[i].WaitFor(5)) ++woken;
    });
  }
  cells[1].Record();
  abort.Abort(absl::UnavailableError("rank 3 is gone"));
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 3);
  cells.Reset();
  EXPECT_FALSE(cells[0].WaitFor(0));
}

TEST(EventCellsTest, CellsMadeAfterTheAbortAreAborted) {
  AbortSignal abort;
  abort.Abort(absl::UnavailableError("lost"));
  EventCells cells(1, &abort);
  EXPECT_FALSE(cells[0].WaitFor(1));
}

TEST(AbortSignalTest, TheFirstReasonStays) {
  AbortSignal abort;
  EXPECT_TRUE(abort.status().ok());
  EXPECT_FALSE(abort.aborted());
  std::string heard;
  const int subscription = abort.Subscribe(
      [&heard](const absl::Status& reason) { heard += std::string(reason.message()); });
  abort.Abort(absl::UnavailableError("first"));
  abort.Abort(absl::InternalError("second"));
  EXPECT_EQ(heard, "first");
  EXPECT_EQ(abort.status(), absl::UnavailableError("first"));
  abort.Unsubscribe(subscription);
}

TEST(AbortSignalTest, NobodyIsCalledAfterUnsubscribing) {
  AbortSignal abort;
  bool called = false;
  abort.Unsubscribe(abort.Subscribe([&called](const absl::Status&) { called = true; }));
  abort.Abort(absl::UnavailableError("lost"));
  EXPECT_FALSE(called);
}

TEST(HostStreamTest, TwoStreamsInOrderThroughCells) {
  AbortSignal abort;
  EventCells cells(2, &abort);
  std::vector<int> order;
  HostStream second("second", [&] {
    ASSERT_TRUE(cells[0].WaitFor(1));
    order.push_back(2);
    cells[1].Record();
  });
  HostStream first("first", [&] {
    order.push_back(1);
    cells[0].Record();
    ASSERT_TRUE(cells[1].WaitFor(1));
    order.push_back(3);
  });
  for (int run = 0; run < 100; ++run) {
    order.clear();
    cells.Reset();
    second.Start();
    first.Start();
    first.Wait();
    second.Wait();
    ASSERT_EQ(order, (std::vector<int>{1, 2, 3}));
  }
}

}  // namespace
}  // namespace planc
