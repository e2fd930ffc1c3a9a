#include "runtime/step/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/instruction_set.h"
#include "runtime/device/host_device.h"
#include "runtime/metrics/memory_table.h"
#include "runtime/step/allocation_guard.h"
#include "runtime/step/profile_trace.h"
#include "runtime/step/test_plan.h"

namespace planc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MemoryKind kActivations = MemoryKind::kActivations;

float* Floats(const Session& session, int buffer, int64_t slot = 0) {
  return static_cast<float*>(session.Address(buffer, slot));
}

std::vector<float> Values(const Session& session, int buffer, int64_t slot = 0) {
  const float* const begin = Floats(session, buffer, slot);
  return {begin, begin + session.plan().buffers[buffer].bytes / 4};
}

// One rank of a plan, ready to run.
struct Rank {
  std::unique_ptr<Device> device = CreateHostDevice();
  std::unique_ptr<Groups> groups;
  std::unique_ptr<Session> session;
  std::unique_ptr<ProgramRunner> runner;

  Rank(const Plan& plan, int64_t rank, LoopbackWorld* world, const RunnerOptions& options = {}) {
    if (world != nullptr) {
      auto connected = ConnectLoopbackGroups(plan, rank, world);
      EXPECT_TRUE(connected.ok()) << connected.status();
      groups = std::make_unique<Groups>(*std::move(connected));
    }
    auto bound = Session::Create(plan, rank, /*threads=*/1, host::InstructionSet::kAvx2,
                                 device.get(), groups.get());
    EXPECT_TRUE(bound.ok()) << bound.status();
    session = *std::move(bound);
    auto made = ProgramRunner::Create(*session, device.get(), options);
    EXPECT_TRUE(made.ok()) << made.status();
    runner = *std::move(made);
  }
};

// Runs `body` as every rank of a world at once.
void OnEveryRank(const Plan& plan, const std::function<void(Rank&)>& body) {
  LoopbackWorld world;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    threads.emplace_back([&plan, &world, &body, rank] {
      Rank self(plan, rank, &world);
      body(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RunProgram, WithoutInstructionsNothingRuns) {
  TestPlan test;
  const int x = test.AddBuffer("x", kActivations, DType::kF32, 4);
  Rank rank(test.Finish(), 0, nullptr);
  Floats(*rank.session, x)[0] = 7;
  for (int kind = 0; kind < kProgramCount; ++kind) {
    EXPECT_TRUE(rank.runner->Run(static_cast<ProgramKind>(kind), {}).ok());
  }
  EXPECT_THAT(Values(*rank.session, x), ElementsAre(7, 0, 0, 0));
  EXPECT_TRUE(std::isnan(rank.session->Loss())) << "the plan has no loss";
}

TEST(RunProgram, MapsTheArenasInWholePages) {
  TestPlan test;
  test.AddBuffer("weight", MemoryKind::kWeights, DType::kF32, 3, 2);
  test.AddBuffer("x", kActivations, DType::kBF16, 100, 3);
  const Rank rank(test.Finish(), 0, nullptr);
  EXPECT_EQ(rank.session->rank_class().arena_bytes[static_cast<int>(MemoryKind::kWeights)], 2 * 64);
  EXPECT_EQ(rank.session->rank_class().arena_bytes[static_cast<int>(kActivations)], 3 * 256);
  EXPECT_EQ(rank.session->ArenaMemory(MemoryKind::kWeights).mapped_bytes, 4096);
  EXPECT_EQ(rank.session->ArenaMemory(kActivations).mapped_bytes, 4096);
  EXPECT_EQ(rank.session->ArenaMemory(MemoryKind::kGradients).mapped_bytes, 0);
}

// A device that takes more than it is asked for.
class GreedyDevice : public Device {
 public:
  static constexpr int64_t kMore = int64_t{3} << 20;

  std::string name() const override { return "greedy"; }
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    return host_->Allocate(bytes == 0 ? 0 : bytes + kMore);
  }
  void Release(void* memory) override { host_->Release(memory); }
  DeviceMemory Measure(const void* memory) override { return host_->Measure(memory); }
  absl::Status CopyToHost(const void* from, void* to, int64_t bytes) override {
    return host_->CopyToHost(from, to, bytes);
  }
  absl::Status CopyFromHost(const void* from, void* to, int64_t bytes) override {
    return host_->CopyFromHost(from, to, bytes);
  }
  absl::StatusOr<std::unique_ptr<DeviceStream>> CreateStream(const std::string& name,
                                                             std::function<void()> body) override {
    return host_->CreateStream(name, std::move(body));
  }

 private:
  std::unique_ptr<Device> host_ = CreateHostDevice();
};

TEST(RunProgram, ADeviceThatMapsMoreThanItIsAskedForIsSeen) {
  TestPlan test;
  test.AddBuffer("x", kActivations, DType::kF32, 1024);
  const Plan& plan = test.Finish();
  GreedyDevice device;
  const auto session =
      Session::Create(plan, 0, /*threads=*/1, host::InstructionSet::kAvx2, &device, nullptr);
  ASSERT_TRUE(session.ok()) << session.status();
  ArenaMemory arenas{};
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    arenas[kind] = (*session)->ArenaMemory(static_cast<MemoryKind>(kind));
  }
  EXPECT_EQ(arenas[static_cast<int>(kActivations)].mapped_bytes, 4096 + GreedyDevice::kMore);
  EXPECT_THAT(MemoryTable((*session)->rank_class(), arenas, 0),
              HasSubstr("  activations                  4096            3149824            3149824"
                        "      3145728\n"));
}

// c = a b on the compute stream, summed over both ranks on the dp stream, d = c + c on compute: in
// two slots in turn, three times.
struct SumOfProducts {
  TestPlan test{Axis::kTp, 2};
  int a = test.AddBuffer("a", kActivations, DType::kF32, 4);
  int b = test.AddBuffer("b", kActivations, DType::kF32, 4);
  int c = test.AddBuffer("c", kActivations, DType::kF32, 4, 2);
  int d = test.AddBuffer("d", kActivations, DType::kF32, 4, 2);
  int total = test.AddBuffer("total", kActivations, DType::kF32, 4);
  int workspace = test.AddBuffer("workspace", MemoryKind::kWorkspace, DType::kU8, 1 << 22);
  int scratch = test.AddBuffer("scratch", MemoryKind::kCommunication, DType::kU8, 64);

  SumOfProducts() {
    const int group = test.AddGroup("tp", Axis::kTp);
    const int product = test.AddEvent("product", c, Stream::kCompute);
    const int sum = test.AddEvent("sum", c, Stream::kData);
    test.Add(Opcode::kMatmul, {a, b, c, workspace}, {2, 2, 2, 0, 0}).records = {test.Ref(product)};
    Instruction& reduce = test.Add(Opcode::kAllReduce, {c, scratch}, {4, 0});
    reduce.stream = Stream::kData;
    reduce.group = group;
    reduce.waits = {test.Ref(product)};
    reduce.records = {test.Ref(sum)};
    test.Add(Opcode::kAdd, {c, c, d}, {4}).waits = {test.Ref(sum)};
    test.Add(Opcode::kAccumulate, {d, total}, {4});
    test.SetProgram(ProgramKind::kStep, {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 1, 1, 0, 0, 0}}, 3);
    test.Finish();
  }

  void Fill(const Session& session) const {
    const float factor = static_cast<float>(session.rank() + 1);
    for (int i = 0; i < 4; ++i) {
      Floats(session, a)[i] = factor * static_cast<float>(i);
      Floats(session, b)[i] = i == 0 || i == 3 ? 1.0f : 0.0f;
    }
  }
};

TEST(RunProgram, StreamsAndRanksWorkTogether) {
  const SumOfProducts demo;
  TestPlan test = demo.test;
  OnEveryRank(test.plan(), [&](Rank& rank) {
    demo.Fill(*rank.session);
    for (int step = 0; step < 50; ++step) {
      ASSERT_TRUE(rank.runner->Run(ProgramKind::kStep, {}).ok());
    }
    for (int slot = 0; slot < 2; ++slot) {
      EXPECT_THAT(Values(*rank.session, demo.c, slot), ElementsAre(0, 3, 6, 9));
      EXPECT_THAT(Values(*rank.session, demo.d, slot), ElementsAre(0, 6, 12, 18));
    }
    EXPECT_THAT(Values(*rank.session, demo.total), ElementsAre(0, 1800, 3600, 5400));
  });
}

TEST(RunProgram, AnOperandShorterThanWhatIsReadIsRefusedAtTheStart) {
  Plan plan = SumOfProducts().test.plan();
  plan.blocks[0].instructions[2].operands[0].bytes = 12;  // of the four elements that are added
  std::unique_ptr<Device> device = CreateHostDevice();
  const auto session =
      Session::Create(plan, 0, /*threads=*/1, host::InstructionSet::kAvx2, device.get(), nullptr);
  EXPECT_THAT(std::string(session.status().message()),
              HasSubstr("instruction 2 (add): operand c has 12 bytes, fewer than the operation"));
}

TEST(RunProgram, OurCodeAllocatesNothingInAStep) {
  if (!AllocationsAreCounted()) GTEST_SKIP() << "a sanitizer owns malloc";
  const SumOfProducts demo;
  TestPlan test = demo.test;
  OnEveryRank(test.plan(),
              [&](Rank& rank) { ASSERT_TRUE(rank.runner->Run(ProgramKind::kStep, {}).ok()); });
  ResetAllocationCounts();
  OnEveryRank(test.plan(), [&](Rank& rank) {
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(rank.runner->Run(ProgramKind::kStep, {}).ok());
    }
  });
  EXPECT_EQ(CountedAllocations().step.sum(), 0);
}

// A waits for what B did in the call before, and the other way round, through a pool of two slots.
TEST(RunProgram, WaitsForTheLatestRecordBeforeIt) {
  TestPlan test;
  const int x = test.AddBuffer("x", kActivations, DType::kF32, 1, 2);
  const int y = test.AddBuffer("y", kActivations, DType::kF32, 1, 2);
  const int one = test.AddBuffer("one", kActivations, DType::kF32, 1);
  const int x_ready = test.AddEvent("x_ready", x, Stream::kCompute);
  const int y_ready = test.AddEvent("y_ready", y, Stream::kData);
  // x = y + one; y = x + one.
  Instruction& first = test.Add(Opcode::kAdd, {y, one, x}, {1});
  first.waits = {test.Ref(y_ready)};
  first.records = {test.Ref(x_ready)};
  Instruction& second = test.Add(Opcode::kAdd, {x, one, y}, {1});
  second.stream = Stream::kData;
  second.waits = {test.Ref(x_ready)};
  second.records = {test.Ref(y_ready)};
  test.SetProgram(ProgramKind::kStep, {{0, 0, 0}, {1, 1, 0}, {1, 1, 0}}, 1000);
  Rank rank(test.Finish(), 0, nullptr);
  Floats(*rank.session, one)[0] = 1;
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(rank.runner->Run(ProgramKind::kStep, {}).ok());
    EXPECT_EQ(Floats(*rank.session, y, 0)[0], 2000.0f * static_cast<float>(step));
    EXPECT_EQ(Floats(*rank.session, y, 1)[0], 4000.0f * static_cast<float>(step));
  }
}

// Tokens that cannot be read from microbatch 1 on.
class FailingTokens : public TokenSource {
 public:
  absl::Status LoadTokens(const MicrobatchPosition& position, int32_t* tokens) override {
    if (position.microbatch >= 1) return absl::DataLossError("file is gone");
    for (int64_t i = 0; i < position.rows; ++i) tokens[i] = static_cast<int32_t>(position.step + i);
    return absl::OkStatus();
  }
  absl::Status LoadTargets(const MicrobatchPosition&, int32_t*) override {
    return absl::OkStatus();
  }
};

TEST(RunProgram, TheFirstErrorEndsEveryStreamAndSaysWhere) {
  TestPlan test;
  const int tokens = test.AddBuffer("tokens", kActivations, DType::kI32, 4);
  const int x = test.AddBuffer("x", kActivations, DType::kF32, 4);
  const int loaded = test.AddEvent("loaded", tokens, Stream::kCompute);
  test.Add(Opcode::kLoadTokens, {tokens}, {4}).records = {test.Ref(loaded)};
  Instruction& other = test.Add(Opcode::kZero, {x});
  other.stream = Stream::kData;
  other.waits = {test.Ref(loaded)};
  test.SetProgram(ProgramKind::kStep, {{0, 0}}, 3);
  Rank rank(test.Finish(), 0, nullptr);
  FailingTokens source;
  const ProgramInputs inputs = {.step = 5, .hyper_parameters = {}, .tokens = &source};
  const absl::Status first = rank.runner->Run(ProgramKind::kStep, inputs);
  EXPECT_EQ(first.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(first.message()), HasSubstr("program step"));
  EXPECT_THAT(std::string(first.message()), HasSubstr("stream compute"));
  EXPECT_THAT(std::string(first.message()), HasSubstr("call block microbatch 1, instruction 0"));
  EXPECT_THAT(std::string(first.message()), HasSubstr("file is gone"));
  EXPECT_EQ(static_cast<int32_t*>(rank.session->Address(tokens))[3], 8) << "of microbatch 0";
  EXPECT_EQ(rank.runner->Run(ProgramKind::kStep, inputs).code(), absl::StatusCode::kDataLoss);
}

// sum -> clip coefficient -> AdamW of a shard of four elements, the first two with weight decay.
struct Update {
  TestPlan test;
  int gradient = test.AddBuffer("gradient", MemoryKind::kGradients, DType::kF32, 4);
  int sum = test.AddBuffer("sum", kActivations, DType::kF64, 1);
  int loss = test.AddBuffer("loss", kActivations, DType::kF64, 1);
  int coefficient = test.AddBuffer("coefficient", kActivations, DType::kF32, 1);
  int norm = test.AddBuffer("norm", kActivations, DType::kF32, 1);
  int master = test.AddBuffer("master", MemoryKind::kOptimizer, DType::kF32, 4);
  int m = test.AddBuffer("m", MemoryKind::kOptimizer, DType::kF32, 4);
  int v = test.AddBuffer("v", MemoryKind::kOptimizer, DType::kF32, 4);

  Update() {
    test.Add(Opcode::kZero, {sum});
    test.Add(Opcode::kSumSquares, {gradient, sum}, {4, 0});
    test.Add(Opcode::kClipCoefficient, {sum, loss, coefficient, norm}, {}, {1.0});
    test.Add(Opcode::kAdamw, {gradient, coefficient, master, m, v}, {4, 2});
    test.SetProgram(ProgramKind::kStep, {{0, 0, 0, 0, 0, 0, 0, 0}});
    test.plan().scalars.grad_norm = norm;
    test.Finish();
  }
};

TEST(RunProgram, DecaysTheWeightsOfTheFirstElementsOnly) {
  Update update;
  Rank rank(update.test.plan(), 0, nullptr);
  for (int i = 0; i < 4; ++i) Floats(*rank.session, update.master)[i] = 1.0f;
  ProgramInputs inputs;
  inputs.hyper_parameters = {1, 0.1, 0.9, 0.95, 1e-8, 0.5};
  ASSERT_TRUE(rank.runner->Run(ProgramKind::kStep, inputs).ok());
  // The gradient is zero, so only the decay acts: 1 - lr * weight_decay.
  EXPECT_THAT(Values(*rank.session, update.master), ElementsAre(0.95f, 0.95f, 1.0f, 1.0f));
  EXPECT_EQ(rank.session->GradNorm(), 0.0);
}

TEST(RunProgram, ANonFiniteNormStopsBeforeTheUpdate) {
  Update update;
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Rank rank(update.test.plan(), 0, nullptr);
    for (int i = 0; i < 4; ++i) Floats(*rank.session, update.master)[i] = 1.0f;
    Floats(*rank.session, update.gradient)[2] = bad;
    ProgramInputs inputs;
    inputs.hyper_parameters = {1, 0.1, 0.9, 0.95, 1e-8, 0.5};
    const absl::Status status = rank.runner->Run(ProgramKind::kStep, inputs);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("gradient norm is"));
    EXPECT_THAT(Values(*rank.session, update.master), Each(1.0f));
    EXPECT_THAT(Values(*rank.session, update.m), Each(0.0f));
  }
}

TEST(RunProgram, ANonFiniteLossStopsBeforeTheUpdate) {
  Update update;
  Rank rank(update.test.plan(), 0, nullptr);
  *static_cast<double*>(rank.session->Address(update.loss)) = std::nan("");
  const absl::Status status = rank.runner->Run(ProgramKind::kStep, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("loss is nan"));
  EXPECT_THAT(Values(*rank.session, update.m), Each(0.0f));
}

TEST(Watchdog, NamesTheInstructionAndThePeerOfAStall) {
  TestPlan test(Axis::kPp, 2);
  const int x = test.AddBuffer("x", kActivations, DType::kF32, 4);
  const int group = test.AddGroup("pp", Axis::kPp);
  Instruction& receive = test.Add(Opcode::kRecv, {x}, {4, -1});
  receive.stream = Stream::kRecvPrevious;
  receive.group = group;
  test.SetProgram(ProgramKind::kStep, {{0}});
  const Plan& plan = test.Finish();

  LoopbackWorld world;
  std::unique_ptr<Rank> silent;  // joins, and never sends
  std::thread other([&] { silent = std::make_unique<Rank>(plan, 0, &world); });
  RunnerOptions options;
  options.stall.deadline = absl::Milliseconds(50);
  Rank rank(plan, 1, &world, options);
  other.join();
  const absl::Status status = rank.runner->Run(ProgramKind::kStep, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 1, stream recv_prev is in call block microbatch 0, instruction 0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("peer rank 0"));
}

TEST(Watchdog, WaitsOnceMoreForARankThatTellsOfItsStorage) {
  TestPlan test(Axis::kPp, 2);
  const int x = test.AddBuffer("x", kActivations, DType::kF32, 4);
  const int group = test.AddGroup("pp", Axis::kPp);
  Instruction& receive = test.Add(Opcode::kRecv, {x}, {4, -1});
  receive.stream = Stream::kRecvPrevious;
  receive.group = group;
  test.SetProgram(ProgramKind::kStep, {{0}});
  const Plan& plan = test.Finish();

  LoopbackWorld world;
  std::unique_ptr<Rank> silent;  // joins, and never sends
  std::thread other([&] { silent = std::make_unique<Rank>(plan, 0, &world); });
  RunnerOptions options;
  options.stall.deadline = absl::Milliseconds(50);
  Rank rank(plan, 1, &world, options);
  other.join();
  ASSERT_TRUE(
      world.store()->Set("loopback/storage/0/0", "rank 0: fsync of metrics has taken 45s").ok());
  const absl::Time begin = absl::Now();
  const absl::Status status = rank.runner->Run(ProgramKind::kStep, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(absl::Now() - begin, 2 * options.stall.deadline);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; storage: rank 0: fsync of metrics has taken 45s\n"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("peer rank 0"));
}

// Hangs until it is let go: a read that never ends.
class HangingTokens : public TokenSource {
 public:
  absl::Status LoadTokens(const MicrobatchPosition& /*position*/, int32_t* /*tokens*/) override {
    let_go_.get_future().wait();
    return absl::OkStatus();
  }
  absl::Status LoadTargets(const MicrobatchPosition& /*position*/, int32_t* /*targets*/) override {
    return absl::OkStatus();
  }
  void LetGo() { let_go_.set_value(); }

 private:
  std::promise<void> let_go_;
};

TEST(Watchdog, TellsWhenTheRankIsStuckInsideAnInstruction) {
  TestPlan test(Axis::kPp, 1);
  const int tokens = test.AddBuffer("tokens", kActivations, DType::kI32, 4);
  test.Add(Opcode::kLoadTokens, {tokens}, {4}).stream = Stream::kData;
  test.SetProgram(ProgramKind::kStep, {{0}});
  HangingTokens source;
  absl::Status stuck;
  RunnerOptions options;
  options.stall.deadline = absl::Milliseconds(20);
  options.stall.patience = absl::Milliseconds(20);
  options.stall.on_stuck = [&](const absl::Status& stall) {
    stuck = stall;
    source.LetGo();  // a run ends the process here
  };
  Rank rank(test.Finish(), 0, nullptr, options);
  const ProgramInputs inputs = {.step = 0, .hyper_parameters = {}, .tokens = &source};
  EXPECT_EQ(rank.runner->Run(ProgramKind::kStep, inputs).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(stuck.message()), HasSubstr("rank 0, stream dp is in call block"));
  EXPECT_THAT(std::string(stuck.message()), HasSubstr("load_tokens"));
}

TEST(Profile, HasEveryInstructionOfTheLastStep) {
  const SumOfProducts demo;
  TestPlan test = demo.test;
  OnEveryRank(test.plan(), [&](Rank& rank) {
    RankProfile profile(18);
    rank.runner.reset();
    RunnerOptions options;
    options.profile = &profile;
    auto runner = ProgramRunner::Create(*rank.session, rank.device.get(), options);
    ASSERT_TRUE(runner.ok());
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE((*runner)->Run(ProgramKind::kStep, {}).ok());
    }
    EXPECT_EQ(profile.streams[static_cast<int>(Stream::kCompute)]->Entries().size(), 18u);
    EXPECT_EQ(profile.streams[static_cast<int>(Stream::kCompute)]->dropped(), 0);
    EXPECT_EQ(profile.streams[static_cast<int>(Stream::kData)]->Entries().size(), 6u);
    const std::string trace = ChromeTrace(test.plan(), rank.session->rank(), profile);
    EXPECT_THAT(trace, HasSubstr("\"name\":\"matmul\""));
    EXPECT_THAT(trace, HasSubstr("\"microbatch\":2"));
  });
}

}  // namespace
}  // namespace planc
