#include "schemas/verify.h"

#include <cstdint>
#include <functional>
#include <iterator>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/tiny_plan.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

std::string Text(const VerifyResult& result) {
  std::string text;
  for (const Violation& v : result.violations) text += v.rule + ": " + v.message + "\n";
  return text;
}

// The plan is refused, first for breaking `rule`, with a message that contains `text`.
void ExpectRefused(const Plan& plan, const std::string& rule, const std::string& text) {
  const VerifyResult result = VerifyPlan(plan);
  ASSERT_FALSE(result.violations.empty()) << "accepted; expected " << rule << ": " << text;
  EXPECT_EQ(result.violations[0].rule, rule) << Text(result);
  EXPECT_THAT(result.violations[0].message, HasSubstr(text));
}

TEST(VerifyPlanTest, AcceptsOneStage) {
  const VerifyResult result = VerifyPlan(TinyPlan(1).plan);
  EXPECT_TRUE(result.violations.empty()) << Text(result);
  // init 2, step 5 + 2*(2 + 7 + 1) + 2 + 1 + 2, eval 3 + 2*(2 + 5)
  EXPECT_EQ(result.certificate.instructions, 49);
  EXPECT_EQ(result.certificate.collectives, 0);
  EXPECT_EQ(result.certificate.transfers, 0);
  EXPECT_GT(result.certificate.order_checks, 0);
}

TEST(VerifyPlanTest, AcceptsTwoStages) {
  const VerifyResult result = VerifyPlan(TinyPlan(2).plan);
  EXPECT_TRUE(result.violations.empty()) << Text(result);
  EXPECT_EQ(result.certificate.collectives, 3);
  EXPECT_EQ(result.certificate.transfers, 6);
}

// Stage 0 wants the gradient of microbatch 0 before it computes microbatch 1; stage 1 wants the
// activations of microbatch 1 before it works on the gradient of microbatch 0.
TEST(VerifyPlanTest, NamesTheCycleOfADeadlock) {
  TinyPlan tiny(2, "F0 B0 F1 B1", "F0 B0 F1 B1");
  EXPECT_TRUE(VerifyPlan(tiny.plan).violations.empty());
  auto& calls = tiny.plan.classes[1].programs[static_cast<int>(ProgramKind::kStep)].steps[0].calls;
  // The gradient of microbatch 0 leaves after the head has run on microbatch 1.
  auto& send = tiny.At("send_dx", 0);
  send.waits = {};
  auto& head = tiny.At("head", 0);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (tiny.plan.blocks[calls[i].block].name != "send_dx") continue;
    const Call moved = calls[i];
    calls.erase(calls.begin() + static_cast<long>(i));
    calls.insert(calls.begin() + static_cast<long>(i) + 2, moved);
    break;
  }
  send.waits.push_back({1, 0});
  head.waits.push_back({1, tiny.At("head", 6).operands[2].binding});
  // Another cell: the latest head instead of that of the same microbatch.
  tiny.plan.events.push_back({"head done", tiny.PoolOf("head"), Stream::kCompute});
  const int event = static_cast<int>(tiny.plan.events.size()) - 1;
  tiny.At("head", 6).records.push_back({event, tiny.At("head", 6).operands[0].binding});
  Block& block = tiny.plan.blocks[tiny.BlockOf("send_dx")];
  block.bindings.push_back(tiny.PoolOf("head"));
  send.waits.push_back({event, static_cast<int>(block.bindings.size()) - 1});
  for (Call& call : calls) {
    if (call.block == tiny.BlockOf("send_dx")) call.slots.push_back(0);
  }
  ExpectRefused(tiny.plan, "deadlock", "these wait for each other: stage 0");
  EXPECT_THAT(VerifyPlan(tiny.plan).violations[0].message, HasSubstr("recv_dx"));
}

TEST(VerifyPlanTest, RefusesATransferWithoutPartner) {
  TinyPlan tiny(2);
  auto& calls = tiny.plan.classes[1].programs[static_cast<int>(ProgramKind::kStep)].steps[0].calls;
  for (size_t i = calls.size(); i-- > 0;) {
    if (tiny.plan.blocks[calls[i].block].name == "send_dx") {
      calls.erase(calls.begin() + static_cast<long>(i));
      break;
    }
  }
  ExpectRefused(tiny.plan, "deadlock", "stream send_prev of stage 1, which has finished");
}

TEST(VerifyPlanTest, RefusesMembersThatDisagree) {
  TinyPlan tiny(2);
  // Stage 1 reduces the loss first.
  Block other = tiny.plan.blocks[tiny.BlockOf("finish")];
  other.name = "finish_swapped";
  std::swap(other.instructions[0], other.instructions[1]);
  tiny.plan.blocks.push_back(other);
  for (Call& call :
       tiny.plan.classes[1].programs[static_cast<int>(ProgramKind::kStep)].steps[0].calls) {
    if (call.block == tiny.BlockOf("finish")) {
      call.block = static_cast<int>(tiny.plan.blocks.size()) - 1;
    }
  }
  ExpectRefused(tiny.plan, "contents", "reduces loss");
}

struct Fault {
  const char* name;
  int stages;
  std::function<void(TinyPlan&)> spoil;
  const char* rule;
  const char* text;
};

class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, IsRefused) {
  TinyPlan tiny(GetParam().stages);
  GetParam().spoil(tiny);
  ExpectRefused(tiny.plan, GetParam().rule, GetParam().text);
}

const Fault kFaults[] = {
    {"MissingWait", 2, [](TinyPlan& t) { t.At("send_x", 0).waits.clear(); }, "order",
     "is read before stream compute is known to have written it"},
    {"ReadBeforeReceived", 2, [](TinyPlan& t) { t.At("embed_backward", 0).waits.clear(); },
     "uninitialised", "never written"},
    {"MissingReduction", 2,
     [](TinyPlan& t) {
       auto& list = t.plan.blocks[t.BlockOf("finish")].instructions;
       list.erase(list.begin() + 1);
     },
     "contents", "operand loss (buffer loss.all) does not hold one whole tensor"},
    {"DoubledReduction", 2,
     [](TinyPlan& t) {
       auto& list = t.plan.blocks[t.BlockOf("finish")].instructions;
       const Instruction again = list[1];
       list.push_back(again);
     },
     "layout", "is no sum over the stages"},
    {"ReadPastTheBuffer", 1, [](TinyPlan& t) { t.At("embed", 1).operands[1].offset = 64; },
     "bounds", "ends at byte"},
    {"WrongSize", 1, [](TinyPlan& t) { t.At("head", 5).integers[2] = 2; }, "bounds", "covers"},
    {"ScratchTooSmall", 1, [](TinyPlan& t) { t.At("head", 1).operands[3].bytes = 16; }, "bounds",
     "the operation takes"},
    {"SharedMemory", 1,
     [](TinyPlan& t) {
       t.plan.buffers[t.BufferOf("workspace")].offset = t.plan.buffers[t.BufferOf("pair")].offset;
       t.At("head", 1).operands[2] = t.At("head", 1).operands[3];
       t.At("head", 1).operands[2].buffer = t.BufferOf("logits");
       t.At("head", 1).operands[2].bytes = t.plan.buffers[t.BufferOf("logits")].bytes;
       t.plan.buffers[t.BufferOf("logits")].offset = t.plan.buffers[t.BufferOf("pair")].offset;
     },
     "overlap", "share memory"},
    {"ForgottenZero", 1, [](TinyPlan& t) { t.At("zero.table", 0) = t.At("begin", 0); }, "structure",
     "bound to a slot of another pool"},
    {"ForgottenMicrobatch", 1,
     [](TinyPlan& t) {
       auto& calls = t.plan.classes[0].programs[2].steps[0].calls;
       for (size_t i = calls.size(); i-- > 0;) {
         const bool works =
             calls[i].block == t.BlockOf("head") || calls[i].block == t.BlockOf("embed_backward");
         if (works && calls[i].microbatch == 1) {
           calls.erase(calls.begin() + static_cast<long>(i));
         }
       }
     },
     "gradient", "has 1 contributions, not one of each of 2"},
    {"MixedMicrobatches", 1,
     [](TinyPlan& t) {
       for (Call& call : t.plan.classes[0].programs[2].steps[0].calls) {
         if (call.block == t.BlockOf("embed_backward")) call.microbatch = 0;
       }
     },
     "contents", "works on microbatch 1 in a call for 0"},
    {"WrongWeight", 1,
     [](TinyPlan& t) {
       t.At("head", 6).operands[1] = t.At("embed", 1).operands[1];
       Block& block = t.plan.blocks[t.BlockOf("head")];
       block.bindings.push_back(t.PoolOf("weights.table"));
       t.At("head", 6).operands[1].binding = static_cast<int>(block.bindings.size()) - 1;
       for (Program& program : t.plan.classes[0].programs) {
         for (Repeat& repeat : program.steps) {
           for (Call& call : repeat.calls) {
             if (call.block == t.BlockOf("head")) call.slots.push_back(0);
           }
         }
       }
     },
     "gradient", "does not multiply by the weight"},
    {"UpdatedTwice", 1,
     [](TinyPlan& t) {
       auto& calls = t.plan.classes[0].programs[2].steps[0].calls;
       const Call again = calls.back();
       calls.push_back(again);
     },
     "training", "is updated 2 times"},
    {"NormWithoutAUnit", 1,
     [](TinyPlan& t) {
       auto& calls = t.plan.classes[0].programs[2].steps[0].calls;
       for (size_t i = calls.size(); i-- > 0;) {
         if (calls[i].block == t.BlockOf("norm.table")) {
           calls.erase(calls.begin() + static_cast<long>(i));
         }
       }
     },
     "training", "not each of 2 once"},
    {"WrongScale", 1, [](TinyPlan& t) { t.At("head", 4).reals[0] = 0.25; }, "training", "scale"},
    {"OverlappingPools", 1, [](TinyPlan& t) { t.plan.classes[0].pool_bases[3] = 0; }, "overlap",
     "begins at 0"},
    {"LargerArena", 1, [](TinyPlan& t) { t.plan.classes[0].arena_bytes[0] += 64; }, "arena",
     "its pools end at"},
    {"EndlessProgram", 1,
     [](TinyPlan& t) { t.plan.classes[0].programs[2].steps[0].count = int64_t{1} << 60; },
     "structure", "repeats"},
    {"LongProgram", 1,
     [](TinyPlan& t) { t.plan.classes[0].programs[2].steps[0].count = int64_t{1} << 23; }, "size",
     "cannot be verified"},
    {"HugeMesh", 1, [](TinyPlan& t) { t.plan.mesh.size[1] = int64_t{1} << 60; }, "structure",
     "ranks"},
};

INSTANTIATE_TEST_SUITE_P(All, FaultTest, testing::ValuesIn(kFaults),
                         [](const auto& info) { return info.param.name; });

// A number of any size.
int64_t AnyNumber(std::mt19937_64& random) {
  constexpr int64_t kValues[] = {
      0, -1, 1, 2, 7, 63, 64, 1 << 20, INT64_MAX, INT64_MIN, int64_t{1} << 55};
  return kValues[random() % 11];
}

template <typename T>
T& Any(std::vector<T>& list, std::mt19937_64& random) {
  return list[random() % list.size()];
}

void CorruptBlock(Plan& plan, std::mt19937_64& random) {
  const int64_t value = AnyNumber(random);
  const int small = static_cast<int>(value);
  Block& block = Any(plan.blocks, random);
  Instruction& instruction = Any(block.instructions, random);
  Operand& operand = Any(instruction.operands, random);
  const std::function<void()> ways[] = {
      [&] { operand.buffer = small; },
      [&] { operand.binding = small; },
      [&] { operand.offset = value; },
      [&] { operand.bytes = value; },
      [&] { operand.shard_stride = value; },
      [&] { instruction.opcode = static_cast<Opcode>(value); },
      [&] { instruction.stream = static_cast<Stream>(value); },
      [&] { instruction.group = small; },
      [&] { instruction.integers.assign(random() % 6, value); },
      [&] {
        if (!instruction.integers.empty()) Any(instruction.integers, random) = value;
      },
      [&] {
        instruction.waits.push_back({small, small});
      },
      [&] {
        instruction.records.push_back({static_cast<int>(random() % 4), small});
      },
      [&] { block.bindings.push_back(small); },
  };
  ways[random() % std::size(ways)]();
}

void CorruptTables(Plan& plan, std::mt19937_64& random) {
  const int64_t value = AnyNumber(random);
  const int small = static_cast<int>(value);
  Buffer& buffer = Any(plan.buffers, random);
  RankClass& rank_class = Any(plan.classes, random);
  const std::function<void()> ways[] = {
      [&] { buffer.offset = value; },
      [&] { buffer.bytes = value; },
      [&] { buffer.shape.assign(random() % 4, value); },
      [&] { buffer.pool = small; },
      [&] { buffer.dtype = static_cast<DType>(value); },
      [&] { Any(rank_class.pool_slots, random) = small; },
      [&] { Any(rank_class.pool_bases, random) = value; },
      [&] { Any(plan.pools, random).stride = value; },
      [&] { plan.mesh.size[random() % kAxisCount] = value; },
      [&] { plan.units[0].elements = value; },
      [&] { plan.params[0].local_shape[0] = value; },
      [&] { rank_class.programs[2].steps[0].count = value; },
      [&] { Any(rank_class.programs[2].steps[0].calls, random).block = small; },
      [&] { Any(rank_class.programs[2].steps[0].calls, random).layer = small; },
  };
  ways[random() % std::size(ways)]();
}

TEST(VerifyPlanTest, SurvivesAnything) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    TinyPlan tiny(1 + i % 2);
    const int times = 1 + i % 3;
    for (int k = 0; k < times; ++k) {
      if (random() % 2 == 0) {
        CorruptBlock(tiny.plan, random);
      } else {
        CorruptTables(tiny.plan, random);
      }
    }
    if (!VerifyPlan(tiny.plan).violations.empty()) ++refused;
  }
  EXPECT_GT(refused, 3000);
}

TEST(VerifyPlanTest, RefusesAnEmptyPlan) { EXPECT_FALSE(VerifyPlan(Plan()).violations.empty()); }

}  // namespace
}  // namespace planc
