// Logits and loss of a chunk of tokens at a time: what the plan holds in memory, and that the
// verifier wants every row once, with its own target and gradient.
#include <functional>

#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "schemas/verify_costs.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

constexpr int64_t kTokens = 768;
constexpr int64_t kChunk = 256;

Plan WidePlan(const std::vector<std::string>& more = {}) {
  return CompileMeshCase({"wide", "llama_wide", {"batch.micro=8"}}, more);
}

std::vector<Instruction>& Head(Plan& plan) {
  for (Block& block : plan.blocks) {
    if (block.name == "head") return block.instructions;
  }
  ADD_FAILURE() << "no head";
  return plan.blocks[0].instructions;
}

// Positions of the instructions with the opcode, in order.
std::vector<size_t> Positions(const std::vector<Instruction>& instructions, Opcode opcode) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].opcode == opcode) positions.push_back(i);
  }
  return positions;
}

// Positions of the products that write or add to the buffer, in order.
std::vector<size_t> Products(const Plan& plan, const std::vector<Instruction>& instructions,
                             const std::string& result) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Opcode opcode = instructions[i].opcode;
    if (opcode != Opcode::kMatmul && opcode != Opcode::kMatmulAdd) continue;
    if (plan.buffers[instructions[i].operands[2].buffer].name == result) positions.push_back(i);
  }
  return positions;
}

TEST(LossChunksTest, RowsFollowEachOther) {
  Plan plan = WidePlan();
  const std::vector<Instruction>& head = Head(plan);
  const std::vector<size_t> sums = Positions(head, Opcode::kLossSumExp);
  ASSERT_EQ(static_cast<int64_t>(sums.size()), kTokens / kChunk);
  for (size_t c = 0; c < sums.size(); ++c) {
    const Operand& logits = head[sums[c]].operands[0];
    const Operand& targets = head[sums[c]].operands[2];
    EXPECT_EQ(plan.buffers[logits.buffer].shape, (std::vector<int64_t>{kChunk, 16390}));
    EXPECT_EQ(targets.bytes, kChunk * SizeOf(DType::kI32));
    EXPECT_EQ(targets.offset, static_cast<int64_t>(c) * targets.bytes);
  }
}

TEST(LossChunksTest, ChunksAreTheSameInBf16) {
  Plan plan = WidePlan({"precision.compute=bf16", "model.vocab=16000"});
  EXPECT_EQ(Positions(Head(plan), Opcode::kLossSumExp).size(), size_t{kTokens / kChunk});
}

TEST(LossChunksTest, GradientsInBf16AreOneSum) {
  Plan plan = WidePlan({"precision.compute=bf16", "precision.gradient_reduce=bf16"});
  EXPECT_EQ(Positions(Head(plan), Opcode::kLossSumExp).size(), 1u);
}

// One way to spoil the head, and the refusal it must meet.
struct Fault {
  const char* name;
  void (*spoil)(const Plan& plan, std::vector<Instruction>& head);
  const char* rule;
  const char* text;
};

class LossChunksFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(LossChunksFaultTest, IsRefused) {
  Plan plan = WidePlan();
  ASSERT_TRUE(VerifyPlan(plan).violations.empty());
  GetParam().spoil(plan, Head(plan));
  for (Instruction& instruction : Head(plan)) {
    instruction.cost = verifying::CostOf(plan, instruction);
  }
  const VerifyResult result = VerifyPlan(plan);
  ASSERT_FALSE(result.violations.empty());
  EXPECT_EQ(result.violations[0].rule, GetParam().rule) << result.violations[0].message;
  EXPECT_NE(result.violations[0].message.find(GetParam().text), std::string::npos)
      << result.violations[0].message;
}

void Erase(std::vector<Instruction>& head, size_t position) {
  head.erase(head.begin() + static_cast<std::ptrdiff_t>(position));
}

const Fault kFaults[] = {
    {"TargetsOfOtherRows",
     [](const Plan&, std::vector<Instruction>& head) {
       head[Positions(head, Opcode::kLossSumExp)[1]].operands[2].offset = 0;
     },
     "contents", "mixes different rows"},
    {"GradientWithTargetsOfOtherRows",
     [](const Plan&, std::vector<Instruction>& head) {
       head[Positions(head, Opcode::kLossGradient)[1]].operands[2].offset = 0;
     },
     "contents", "not of the same logits"},
    {"RowsBetweenTheChunks",
     [](const Plan& plan, std::vector<Instruction>& head) {
       const size_t product = Products(plan, head, "logits")[1];
       head[product].operands[0].offset += 32 * SizeOf(DType::kF32);
     },
     "contents", "mixes different rows"},
    {"WeightGradientOfOtherRows",
     [](const Plan& plan, std::vector<Instruction>& head) {
       head[Products(plan, head, "d.output")[1]].operands[1].offset = 0;
     },
     "gradient", "is not the gradient of the weight"},
    {"WeightGradientLacksRows",
     [](const Plan& plan, std::vector<Instruction>& head) {
       Erase(head, Products(plan, head, "d.output")[1]);
     },
     "gradient", "has 2 contributions, not one of each of 3 uses"},
    {"WeightGradientHasRowsTwice",
     [](const Plan& plan, std::vector<Instruction>& head) {
       const size_t second = Products(plan, head, "d.output")[1];
       head.insert(head.begin() + static_cast<std::ptrdiff_t>(second), Instruction(head[second]));
     },
     "gradient", "has 4 contributions, not one of each of 3 uses"},
    {"GradientLacksRows",
     [](const Plan& plan, std::vector<Instruction>& head) {
       Erase(head, Products(plan, head, "d.final_norm")[1]);
     },
     "contents", "does not hold one whole tensor"},
    {"GradientInOtherRows",
     [](const Plan& plan, std::vector<Instruction>& head) {
       const std::vector<size_t> products = Products(plan, head, "d.final_norm");
       std::swap(head[products[0]].operands[2].offset, head[products[1]].operands[2].offset);
     },
     "gradient", "gets the gradient of another tensor"},
    {"LossLacksRows",
     [](const Plan& plan, std::vector<Instruction>& head) {
       const size_t product = Products(plan, head, "logits")[2];
       head.erase(head.begin() + static_cast<std::ptrdiff_t>(product),
                  head.begin() + static_cast<std::ptrdiff_t>(product) + 6);
     },
     "contents", "does not hold one whole tensor"},
    {"NormOfSomeRows",
     [](const Plan&, std::vector<Instruction>& head) {
       Instruction& norm = head[Positions(head, Opcode::kRmsNormBackward)[0]];
       norm.integers[0] = kChunk;
       for (int k : {0, 1, 3, 4}) norm.operands[k].bytes /= kTokens / kChunk;
     },
     "contents", "the operation needs all"},
};

INSTANTIATE_TEST_SUITE_P(All, LossChunksFaultTest, testing::ValuesIn(kFaults),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planc
