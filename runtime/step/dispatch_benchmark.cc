// What it takes to get from one instruction to the next: step programs of thousands of instructions
// that do next to nothing, in microseconds for each.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/instruction_set.h"
#include "runtime/device/host_device.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"
#include "runtime/step/test_plan.h"

namespace planc {
namespace {

constexpr int kInstructions = 64;  // of the block
constexpr int kCalls = 64;         // of the block, in a step

// How the instructions of the block, each of one element, lie on streams and wait for each other.
enum class Pattern {
  kOneStream,
  kTwoStreams,  // alternately, without events
  kRecords,     // on one stream, each recording an event that another stream waits for at the end
  kChain,       // alternately on two streams, each waiting for the one before
};

Plan PlanOf(Pattern pattern) {
  TestPlan test;
  const int a = test.AddBuffer("a", MemoryKind::kActivations, DType::kF32, 1);
  const int b = test.AddBuffer("b", MemoryKind::kActivations, DType::kF32, 1);
  const int events[2] = {test.AddEvent("a", a, Stream::kCompute),
                         test.AddEvent("b", b, Stream::kData)};
  for (int i = 0; i < kInstructions; ++i) {
    const bool odd = i % 2 == 1;
    const bool last = i == kInstructions - 1;
    Instruction& one = odd ? test.Add(Opcode::kZero, {b}) : test.Add(Opcode::kZero, {a});
    const bool other = pattern == Pattern::kRecords ? last : pattern != Pattern::kOneStream && odd;
    if (other) one.stream = Stream::kData;
    if (pattern == Pattern::kChain) {
      one.waits = {test.Ref(events[odd ? 0 : 1])};
      one.records = {test.Ref(events[odd ? 1 : 0])};
    } else if (pattern == Pattern::kRecords) {
      if (last) one.waits = {test.Ref(events[0])};
      if (!last) one.records = {test.Ref(events[0])};
    }
  }
  test.SetProgram(ProgramKind::kStep, std::vector<std::vector<int32_t>>(1, {0, 0}), kCalls);
  return test.Finish();
}

void BM_Dispatch(benchmark::State& state, Pattern pattern) {
  const Plan plan = PlanOf(pattern);
  const std::unique_ptr<Device> device = CreateHostDevice();
  const auto session = Session::Create(plan, /*rank=*/0, /*threads=*/1, host::InstructionSet::kAvx2,
                                       device.get(), nullptr);
  if (!session.ok()) return state.SkipWithError(std::string(session.status().message()).c_str());
  const auto runner = ProgramRunner::Create(**session, device.get(), {});
  if (!runner.ok()) return state.SkipWithError(std::string(runner.status().message()).c_str());
  for (auto _ : state) {
    if (!(*runner)->Run(ProgramKind::kStep, {}).ok()) return state.SkipWithError("the step failed");
  }
  state.counters["seconds/instruction"] =
      benchmark::Counter(kInstructions * kCalls, benchmark::Counter::kIsIterationInvariantRate |
                                                     benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(BM_Dispatch, one_stream, Pattern::kOneStream)->UseRealTime();
BENCHMARK_CAPTURE(BM_Dispatch, two_streams, Pattern::kTwoStreams)->UseRealTime();
BENCHMARK_CAPTURE(BM_Dispatch, records, Pattern::kRecords)->UseRealTime();
BENCHMARK_CAPTURE(BM_Dispatch, chain_over_two_streams, Pattern::kChain)->UseRealTime();

}  // namespace
}  // namespace planc
