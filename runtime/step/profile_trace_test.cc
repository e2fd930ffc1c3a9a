#include "runtime/step/profile_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/step/event_arrows.h"
#include "runtime/step/test_plan.h"

namespace planc {
namespace {

using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kCompute = static_cast<int>(Stream::kCompute);
constexpr int kData = static_cast<int>(Stream::kData);

// Three runs of: a product on compute into one of two slots, and its sum over ranks on the dp
// stream, which waits for the product; the product waits for the sum that used its slot before.
struct KnownStep {
  TestPlan test{Axis::kTp, 2};
  RankProfile profile{8};

  KnownStep() {
    const int x = test.AddBuffer("x", MemoryKind::kActivations, DType::kF32, 4, 2);
    const int tensor = test.AddGroup("tp", Axis::kTp);
    const int ready = test.AddEvent("ready", x, Stream::kCompute);
    const int summed = test.AddEvent("summed", x, Stream::kData);
    Instruction& product = test.Add(Opcode::kMatmul, {x, x, x, x}, {2, 2, 2, 0, 0});
    product.waits = {test.Ref(summed)};
    product.records = {test.Ref(ready)};
    Instruction& reduce = test.Add(Opcode::kAllReduce, {x, x}, {4, 0});
    reduce.stream = Stream::kData;
    reduce.group = tensor;
    reduce.waits = {test.Ref(ready)};
    reduce.records = {test.Ref(summed)};
    reduce.cost.bytes_sent = 16;
    test.SetProgram(ProgramKind::kStep, {{0}, {1}, {0}});
    test.Finish();

    StreamProfile& compute = *profile.streams[kCompute];
    compute.Add({0, 0, 0, 0, 1000000, 1000000, 1020000});
    compute.Add({0, 0, 0, 1, 1020100, 1020100, 1040000});
    compute.Add({0, 0, 0, 2, 1040100, 1051000, 1070000});  // waits for the first sum
    StreamProfile& data = *profile.streams[kData];
    data.Add({0, 1, 0, 0, 1000000, 1020050, 1050000});  // waits for the first product
    data.Add({0, 1, 0, 1, 1050100, 1050100, 1060000});  // its product was done
    data.Add({0, 1, 0, 2, 1060100, 1070100, 1090000});
  }

  StepEntries Entries() const {
    StepEntries entries;
    for (int stream = 0; stream < kStreamCount; ++stream) {
      entries[stream] = profile.streams[stream]->Entries();
    }
    return entries;
  }
};

TEST(EventArrows, LeadFromWhatAnInstructionWaitedFor) {
  KnownStep step;
  const Plan& plan = step.test.plan();
  EXPECT_THAT(
      EventArrows(plan, plan.classes[0], step.Entries()),
      ElementsAre(EventArrow{{kCompute, 0}, {kData, 0}}, EventArrow{{kData, 0}, {kCompute, 2}},
                  EventArrow{{kCompute, 2}, {kData, 2}}));
}

TEST(EventArrows, NeedTheWholeStep) {
  KnownStep step;
  const Plan& plan = step.test.plan();
  StepEntries entries = step.Entries();
  entries[kData].pop_back();
  EXPECT_THAT(EventArrows(plan, plan.classes[0], entries), IsEmpty());
  entries[kData].clear();
  EXPECT_THAT(EventArrows(plan, plan.classes[0], entries), IsEmpty());
  entries = step.Entries();
  entries[kCompute].push_back(entries[kCompute].back());
  EXPECT_THAT(EventArrows(plan, plan.classes[0], entries), IsEmpty());
}

std::vector<json> EventsOf(const json& trace, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : trace) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

TEST(ChromeTrace, HasASliceForEachInstruction) {
  KnownStep step;
  const json trace = json::parse(ChromeTrace(step.test.plan(), 1, step.profile));
  std::vector<json> products;
  std::vector<json> waits;
  for (const json& event : EventsOf(trace, "X")) {
    EXPECT_EQ(event.at("pid"), 1);
    EXPECT_GE(event.at("dur").get<double>(), 0);
    if (event.at("name") == "matmul") products.push_back(event);
    if (event.at("name") == "wait") waits.push_back(event);
  }
  ASSERT_EQ(products.size(), 3u);
  EXPECT_EQ(products[2].at("tid"), kCompute);
  EXPECT_DOUBLE_EQ(products[2].at("ts").get<double>(), 1051.0) << "microseconds";
  EXPECT_DOUBLE_EQ(products[2].at("dur").get<double>(), 19.0);
  EXPECT_EQ(products[2].at("args").at("microbatch"), 2);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_DOUBLE_EQ(waits[0].at("ts").get<double>(), 1040.1);
  EXPECT_DOUBLE_EQ(waits[0].at("dur").get<double>(), 10.9);
}

TEST(ChromeTrace, NamesProcessAndThreads) {
  KnownStep step;
  const json trace = json::parse(ChromeTrace(step.test.plan(), 1, step.profile));
  std::set<std::string> threads;
  std::string process;
  std::string labels;
  for (const json& event : EventsOf(trace, "M")) {
    EXPECT_EQ(event.at("pid"), 1);
    if (event.at("name") == "thread_name") threads.insert(event.at("args").at("name"));
    if (event.at("name") == "process_name") process = event.at("args").at("name");
    if (event.at("name") == "process_labels") labels = event.at("args").at("labels");
  }
  EXPECT_EQ(process, "rank 1");
  EXPECT_EQ(labels, "step 0.090 ms, communication 0.060 ms, exposed 0.031 ms");
  EXPECT_EQ(threads, (std::set<std::string>{"compute", "dp", "exposed communication"}));
}

// Perfetto takes a slice to hold an arrow's end when the time stamp is inside it.
TEST(ChromeTrace, ArrowsBeginAndEndInsideSlices) {
  KnownStep step;
  const json trace = json::parse(ChromeTrace(step.test.plan(), 1, step.profile));
  const std::vector<json> begins = EventsOf(trace, "s");
  const std::vector<json> ends = EventsOf(trace, "f");
  ASSERT_EQ(begins.size(), 3u);
  ASSERT_EQ(ends.size(), 3u);
  const auto inside = [&](const json& half) {
    for (const json& slice : EventsOf(trace, "X")) {
      const double begin = slice.at("ts").get<double>();
      const double end = begin + slice.at("dur").get<double>();
      const double time = half.at("ts").get<double>();
      if (slice.at("tid") == half.at("tid") && begin <= time && time < end) return true;
    }
    return false;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(begins[i].at("id"), ends[i].at("id"));
    EXPECT_NE(begins[i].at("tid"), ends[i].at("tid"));
    EXPECT_TRUE(inside(begins[i])) << begins[i];
    EXPECT_TRUE(inside(ends[i])) << ends[i];
  }
}

TEST(MergedTrace, HoldsTheEventsOfAllRanks) {
  KnownStep step;
  const std::string first = ChromeTrace(step.test.plan(), 0, step.profile);
  const std::string second = ChromeTrace(step.test.plan(), 1, step.profile);
  const json merged = json::parse(MergedTrace({first, second}));
  EXPECT_EQ(merged.size(), json::parse(first).size() + json::parse(second).size());
  std::set<int> processes;
  std::set<std::string> arrows;
  for (const json& event : merged) {
    processes.insert(event.at("pid").get<int>());
    if (event.at("ph") == "s") arrows.insert(event.at("id"));
  }
  EXPECT_EQ(processes, (std::set<int>{0, 1}));
  EXPECT_EQ(arrows.size(), 6u) << "no arrow of one rank ends at another";
  EXPECT_EQ(json::parse(MergedTrace({})).size(), 0u);
}

}  // namespace
}  // namespace planc
