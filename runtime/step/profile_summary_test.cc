// Sums, floors and exposed communication of a step with known times, and the table made of them.
#include "runtime/step/profile_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "runtime/step/profile_table.h"
#include "runtime/step/test_plan.h"

namespace planc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kCompute = static_cast<int>(Stream::kCompute);
constexpr int kData = static_cast<int>(Stream::kData);

// 1 GFLOP/s in fp32, 4 in bf16, 2 GB/s: a FLOP takes 1 ns or a quarter, a byte half a nanosecond.
constexpr MachineRates kRates = {1e9, 4e9, 2e9, 2};

// Instructions 0 and 1 are products, 2 an addition, 3 an all-reduce on the dp stream, 4 an
// all-gather on the compute stream.
struct KnownStep {
  TestPlan test{Axis::kTp, 2};
  RankProfile profile{8};

  KnownStep() {
    const int x = test.AddBuffer("x", MemoryKind::kActivations, DType::kF32, 4);
    const int y = test.AddBuffer("y", MemoryKind::kActivations, DType::kBF16, 4);
    const int data = test.AddGroup("dp", Axis::kDpShard);
    const int tensor = test.AddGroup("tp", Axis::kTp);
    test.Add(Opcode::kMatmul, {x, x, x, x}, {2, 2, 2, 0, 0}).cost = {1000, 100, 100, 0};
    test.Add(Opcode::kMatmul, {y, y, y, y}, {2, 2, 2, 0, 0}).cost = {1000, 300, 400, 0};
    test.Add(Opcode::kAdd, {x, x, x}, {4}).cost = {10, 200, 100, 0};
    Instruction& reduce = test.Add(Opcode::kAllReduce, {x, x}, {4, 0});
    reduce.cost = {0, 16, 16, 500};
    reduce.stream = Stream::kData;
    reduce.group = data;
    Instruction& gather = test.Add(Opcode::kAllGather, {x, x}, {4});
    gather.cost = {0, 16, 32, 250};
    gather.group = tensor;
    test.SetProgram(ProgramKind::kStep, {{0, 0}});
    test.Finish();

    StreamProfile& compute = *profile.streams[kCompute];
    compute.Add({0, 0, 0, 0, 1000, 1000, 3000});
    compute.Add({0, 1, 0, 0, 3010, 3010, 3510});
    compute.Add({0, 4, 0, 0, 3520, 3520, 4520});
    compute.Add({0, 2, 0, 0, 4530, 6000, 6300});
    StreamProfile& data_stream = *profile.streams[kData];
    data_stream.Add({0, 3, 0, 0, 900, 2500, 5500});
    data_stream.Add({0, 3, 0, 1, 5510, 6200, 7000});
  }

  ProfileSummary Summary() { return SummaryOf(test.plan(), profile, kRates); }
};

TEST(ProfileSummary, FloorIsTheLargerOfComputingAndMoving) {
  const KnownStep step;
  TestPlan test = step.test;
  const auto floor = [&](int instruction) {
    return FloorSeconds(test.plan(), test.plan().blocks[0].instructions[instruction], kRates);
  };
  EXPECT_DOUBLE_EQ(floor(0), 1000e-9) << "1000 FLOPs, 200 bytes";
  EXPECT_DOUBLE_EQ(floor(1), 350e-9) << "1000 FLOPs of bf16, 700 bytes";
  EXPECT_DOUBLE_EQ(floor(2), 150e-9) << "300 bytes";
  EXPECT_EQ(floor(3), 0) << "communication";
}

TEST(ProfileSummary, SumsByFamily) {
  KnownStep step;
  const ProfileSummary summary = step.Summary();
  const OpTotal& products = summary.families[static_cast<int>(OpFamily::kProducts)];
  EXPECT_EQ(products.calls, 2);
  EXPECT_EQ(products.nanoseconds, 2500);
  EXPECT_DOUBLE_EQ(products.flops, 2000);
  EXPECT_DOUBLE_EQ(products.bytes, 900);
  EXPECT_DOUBLE_EQ(products.product_seconds, 1250e-9);
  EXPECT_DOUBLE_EQ(products.floor_seconds, 1350e-9);
  const OpTotal& elementwise = summary.families[static_cast<int>(OpFamily::kElementwise)];
  EXPECT_EQ(elementwise.calls, 1);
  EXPECT_EQ(elementwise.nanoseconds, 300);
  EXPECT_DOUBLE_EQ(elementwise.floor_seconds, 150e-9);
  const OpTotal& communication = summary.families[static_cast<int>(OpFamily::kCommunication)];
  EXPECT_EQ(communication.calls, 3);
  EXPECT_EQ(communication.nanoseconds, 4800);
  EXPECT_EQ(communication.bytes_sent, 1250);
  EXPECT_EQ(communication.floor_seconds, 0);
  EXPECT_DOUBLE_EQ(summary.floor_seconds, 1500e-9);
  EXPECT_EQ(summary.families[static_cast<int>(OpFamily::kNorms)].calls, 0);
}

TEST(ProfileSummary, SumsProductsByShape) {
  KnownStep step;
  const ProfileSummary summary = step.Summary();
  ASSERT_EQ(summary.products.size(), 2u);
  const OpTotal& fp32 = summary.products.begin()->second;
  const OpTotal& bf16 = summary.products.rbegin()->second;
  EXPECT_EQ(fp32.calls + bf16.calls, 2);
  EXPECT_EQ(fp32.nanoseconds + bf16.nanoseconds, 2500);
  EXPECT_EQ(std::max(fp32.nanoseconds, bf16.nanoseconds), 2000);
}

TEST(ProfileSummary, SplitsTheTimeOfAStream) {
  KnownStep step;
  const ProfileSummary summary = step.Summary();
  EXPECT_EQ(summary.begin, 900);
  EXPECT_EQ(summary.end, 7000);
  const StreamTotal& compute = summary.streams[kCompute];
  EXPECT_EQ(compute.instructions, 4);
  EXPECT_EQ(compute.nanoseconds, 5300);
  EXPECT_EQ(compute.busy, 3800);
  EXPECT_EQ(compute.waiting, 1470);
  EXPECT_EQ(compute.dispatch, 30);
  EXPECT_EQ(compute.median_dispatch, 10);
  EXPECT_EQ(compute.opcodes[static_cast<int>(Opcode::kMatmul)].nanoseconds, 2500);
  const StreamTotal& data = summary.streams[kData];
  EXPECT_EQ(data.nanoseconds, 6100);
  EXPECT_EQ(data.busy, 3800);
  EXPECT_EQ(data.waiting, 2290);
  EXPECT_EQ(data.dispatch, 10);
  EXPECT_EQ(summary.streams[static_cast<int>(Stream::kSendNext)].instructions, 0);
}

// Communicating: 2500 to 5500 and 6200 to 7000. Computing: 1000 to 3000, 3010 to 3510 and 6000 to
// 6300.
TEST(ProfileSummary, CommunicationIsExposedWhileNothingComputes) {
  KnownStep step;
  const ProfileSummary summary = step.Summary();
  EXPECT_EQ(summary.communication.running, 3800);
  EXPECT_EQ(summary.communication.exposed, 10 + 1990 + 700);
  EXPECT_THAT(summary.exposed, ElementsAre(TimeInterval{3000, 3010}, TimeInterval{3510, 5500},
                                           TimeInterval{6300, 7000}));
  ASSERT_EQ(summary.groups.size(), 2u);
  EXPECT_EQ(summary.groups[0].sum.calls, 2) << "dp";
  EXPECT_EQ(summary.groups[0].running, 3800);
  EXPECT_EQ(summary.groups[0].exposed, 2700);
  EXPECT_EQ(summary.groups[1].sum.calls, 1) << "tp";
  EXPECT_EQ(summary.groups[1].running, 1000);
  EXPECT_EQ(summary.groups[1].exposed, 1000);
}

TEST(ProfileSummary, OfNothing) {
  TestPlan test;
  const RankProfile profile(1);
  const ProfileSummary summary = SummaryOf(test.Finish(), profile, kRates);
  EXPECT_EQ(summary.nanoseconds(), 0);
  EXPECT_EQ(summary.communication.exposed, 0);
  EXPECT_EQ(summary.floor_seconds, 0);
}

TEST(OpFamilyTable, CommunicationIsWhatNeedsAGroup) {
  for (int opcode = 0; opcode < kOpcodeCount; ++opcode) {
    const OpcodeKind kind = TraitsOf(static_cast<Opcode>(opcode)).kind;
    const bool needs_group = kind == OpcodeKind::kCollective || kind == OpcodeKind::kTransfer;
    EXPECT_EQ(FamilyOf(static_cast<Opcode>(opcode)) == OpFamily::kCommunication, needs_group)
        << TraitsOf(static_cast<Opcode>(opcode)).text;
  }
}

TEST(ProfileTable, ShowsTheNumbers) {
  KnownStep step;
  const std::string table = ProfileTable(step.test.plan(), step.profile, kRates);
  EXPECT_THAT(table, HasSubstr("last step: 0.000006 s\n"));
  EXPECT_THAT(table,
              HasSubstr("measured with 2 threads: products fp32 1.0 GFLOP/s, bf16 4.0 GFLOP/s, "
                        "memory 2.0 GB/s\n"));
  EXPECT_THAT(table, HasSubstr("  products                        2   0.000003  40.98%     0.80"
                               "    0.36   0.000001   1.85  compute\n"));
  EXPECT_THAT(table, HasSubstr("  elementwise                     1   0.000000   4.92%     0.03"
                               "    1.00   0.000000   2.00  memory\n"));
  EXPECT_THAT(table, HasSubstr("  communication                   3   0.000005  78.69%         "
                               "    0.26"));
  EXPECT_THAT(table, HasSubstr("  whole step                          0.000006 100.00%             "
                               "       0.000002   4.07\n"));
  EXPECT_THAT(table, HasSubstr("dispatch on compute: 0.007 us for each of 4 instructions (median "
                               "0.010 us), 0.492% of the step\n"));
  EXPECT_THAT(table, HasSubstr("communication: total 0.000004 s, exposed 0.000003 s, overlapped "
                               "0.000001 s\n"));
  EXPECT_THAT(table, HasSubstr("  exposed: 71.05% of communication, 44.26% of the step\n"));
  EXPECT_THAT(table, HasSubstr("  2x2x2 f32*f32=f32                           1   0.000002  32.79%"
                               "     0.50   0.000001   2.00\n"));
  EXPECT_THAT(table, HasSubstr("stream dp: 0.000006 s\n"));
}

TEST(ProfileTable, IsAtMost100Columns) {
  KnownStep step;
  std::istringstream table(ProfileTable(step.test.plan(), step.profile, {1e14, 1e14, 1e12, 128}));
  for (std::string line; std::getline(table, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ProfileTable, SaysWhatWasDropped) {
  KnownStep step;
  step.profile.streams[kData] = std::make_unique<StreamProfile>(1);
  for (int i = 0; i < 3; ++i) step.profile.streams[kData]->Add({0, 3, 0, 0, 900, 2500, 5500});
  EXPECT_THAT(ProfileTable(step.test.plan(), step.profile, kRates),
              HasSubstr("(2 earlier instructions dropped)"));
}

}  // namespace
}  // namespace planc
