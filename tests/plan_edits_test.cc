// Edits of right plans that change what is trained or reported, each with the rule that refuses it.
#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

// What the edits need to find in a plan, by name.
class PlanEditor {
 public:
  explicit PlanEditor(Plan& plan) : plan(plan) {}

  int BlockOf(const std::string& name) const {
    for (size_t b = 0; b < plan.blocks.size(); ++b) {
      if (plan.blocks[b].name == name) return static_cast<int>(b);
    }
    ADD_FAILURE() << "no block " << name;
    return 0;
  }
  std::vector<Instruction>& Block(const std::string& name) {
    return plan.blocks[BlockOf(name)].instructions;
  }
  // Position of instruction number `skip` of the opcode in the block.
  size_t Find(const std::string& block, Opcode opcode, int skip = 0) {
    const std::vector<Instruction>& list = Block(block);
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].opcode == opcode && skip-- == 0) return i;
    }
    ADD_FAILURE() << "no " << TraitsOf(opcode).text << " in " << block;
    return 0;
  }
  Instruction& At(const std::string& block, Opcode opcode, int skip = 0) {
    return Block(block)[Find(block, opcode, skip)];
  }
  void Duplicate(const std::string& block, Opcode opcode) {
    const size_t at = Find(block, opcode);
    const Instruction again = Block(block)[at];
    Block(block).insert(Block(block).begin() + static_cast<std::ptrdiff_t>(at), again);
  }
  void Erase(const std::string& block, Opcode opcode, int skip = 0) {
    const size_t at = Find(block, opcode, skip);
    Block(block).erase(Block(block).begin() + static_cast<std::ptrdiff_t>(at));
  }
  // The evaluation program calls a block of its own where it called `block`; returns its name.
  std::string OnlyInEvaluation(const std::string& block) {
    const int from = BlockOf(block);
    const int copy = static_cast<int>(plan.blocks.size());
    plan.blocks.push_back(plan.blocks[from]);
    plan.blocks.back().name = block + ".eval";
    for (RankClass& rank_class : plan.classes) {
      for (Repeat& repeat : rank_class.programs[static_cast<int>(ProgramKind::kEval)].steps) {
        for (Call& call : repeat.calls) {
          if (call.block == from) call.block = copy;
        }
      }
    }
    return plan.blocks.back().name;
  }
  Parameter& Param(const std::string& part) {
    for (Parameter& parameter : plan.params) {
      if (absl::StrContains(parameter.name, part)) return parameter;
    }
    ADD_FAILURE() << "no parameter " << part;
    return plan.params[0];
  }
  // Every operand of the buffers with this name becomes f32 of half the bytes.
  void HalveScalar(const std::string& name) {
    for (Buffer& buffer : plan.buffers) {
      if (buffer.name != name) continue;
      buffer.dtype = DType::kF32;
      buffer.bytes = 4;
    }
    for (planc::Block& block : plan.blocks) {
      for (Instruction& instruction : block.instructions) {
        for (Operand& operand : instruction.operands) {
          if (plan.buffers[operand.buffer].name == name) operand.bytes = 4;
        }
      }
    }
  }

  Plan& plan;
};

struct Edit {
  const char* name;
  const char* family;
  std::vector<std::string> sets;
  std::function<void(PlanEditor&)> apply;
  const char* rule;
  const char* text;  // part of the first message
};

std::ostream& operator<<(std::ostream& out, const Edit& edit) { return out << edit.name; }

class PlanEditTest : public testing::TestWithParam<Edit> {};

TEST_P(PlanEditTest, IsRefused) {
  const Edit& edit = GetParam();
  Plan plan = CompileMeshCase({edit.name, edit.family, edit.sets});
  ASSERT_TRUE(VerifyPlan(plan).violations.empty());
  PlanEditor editor(plan);
  edit.apply(editor);
  const VerifyResult result = VerifyPlan(plan);
  ASSERT_FALSE(result.violations.empty()) << "accepted";
  EXPECT_EQ(result.violations[0].rule, edit.rule) << result.violations[0].message;
  EXPECT_TRUE(absl::StrContains(result.violations[0].message, edit.text))
      << result.violations[0].message;
}

const std::vector<std::string> kPipeline = {"cluster.gpus_per_node=2", "mesh.pp=2"};
const std::vector<std::string> kTensor = {"cluster.gpus_per_node=2", "mesh.tp=2"};
const std::vector<std::string> kZero3 = {"cluster.gpus_per_node=2", "mesh.dp_shard=2",
                                         "parallelism.zero=3"};

const Edit kEdits[] = {
    {"PositionsTwice",
     "gpt2",
     {},
     [](PlanEditor& e) { e.Duplicate("embed_forward", Opcode::kPositionForward); },
     "model",
     "computes position_forward where the model has embedding_forward"},
    {"BiasTwice",
     "gpt2",
     {},
     [](PlanEditor& e) { e.Duplicate("layer_forward", Opcode::kBiasForward); },
     "model",
     "computes bias_forward where the model has matmul"},
    {"NormOfTheFirstStageOnly", "llama", kPipeline,
     [](PlanEditor& e) {
       e.At("norm.layer", Opcode::kSumSquares).integers[1] |= AxisBit(Axis::kPp);
     },
     "training", "left out on all stages but the first"},
    {"LossInFourBytes",
     "llama",
     {},
     [](PlanEditor& e) { e.HalveScalar("loss"); },
     "structure",
     "the loss is no f64 scalar"},
    {"SumOfSquaresInFourBytes",
     "llama",
     {},
     [](PlanEditor& e) { e.HalveScalar("norm_sum"); },
     "bounds",
     "operand norm_sum cannot be f32"},
    {"ClipsBeforeTheLossIsSummed", "llama", kPipeline,
     [](PlanEditor& e) {
       for (RankClass& rank_class : e.plan.classes) {
         for (Repeat& repeat : rank_class.programs[static_cast<int>(ProgramKind::kStep)].steps) {
           std::erase_if(repeat.calls,
                         [&](const Call& call) { return call.block == e.BlockOf("sum_loss"); });
         }
       }
     },
     "contents", "operand loss"},
    {"EvaluationWithoutFinalNorm",
     "llama",
     {},
     [](PlanEditor& e) {
       const Operand x = e.At("head_eval", Opcode::kRmsNormForward).operands[0];
       e.Erase("head_eval", Opcode::kRmsNormForward);
       e.At("head_eval", Opcode::kMatmul).operands[0] = x;
     },
     "model",
     "the loss is not the model's"},
    {"EvaluationWithNormsExchanged",
     "llama",
     {},
     [](PlanEditor& e) {
       const std::string block = e.OnlyInEvaluation("layer_forward");
       std::swap(e.At(block, Opcode::kRmsNormForward, 0).operands[1],
                 e.At(block, Opcode::kRmsNormForward, 1).operands[1]);
     },
     "model",
     "rms_norm_forward takes other weights than the model's"},
    {"EvaluationAddsTheInputForAttention",
     "llama",
     {},
     [](PlanEditor& e) {
       const std::string block = e.OnlyInEvaluation("layer_forward");
       Instruction& add = e.At(block, Opcode::kAdd);
       add.operands[1] = add.operands[0];
     },
     "model",
     "the loss is not the model's"},
    {"EvaluationWithoutGather", "llama", kZero3,
     [](PlanEditor& e) {
       for (RankClass& rank_class : e.plan.classes) {
         auto& steps = rank_class.programs[static_cast<int>(ProgramKind::kEval)].steps;
         for (Repeat& repeat : steps) {
           std::erase_if(repeat.calls, [&](const Call& call) {
             return call.block == e.BlockOf("gather.final_norm");
           });
         }
       }
     },
     "contents", ""},
    {"NoRotaryEmbedding",
     "llama",
     {},
     [](PlanEditor& e) {
       e.Erase("layer_forward", Opcode::kRopeForward);
       e.Erase("layer_backward", Opcode::kRopeBackward);
     },
     "model",
     "computes matmul where the model has rope_forward"},
    {"NormsExchangedEverywhere",
     "llama",
     {},
     [](PlanEditor& e) {
       std::swap(e.Param("input_layernorm").name, e.Param("post_attention_layernorm").name);
     },
     "model",
     "rms_norm_forward takes other weights than the model's"},
    {"GateAndUpExchanged",
     "llama",
     {},
     [](PlanEditor& e) { std::swap(e.Param("gate_proj").name, e.Param("up_proj").name); },
     "model",
     "takes other weights than the model's"},
    {"WrongInitialValue",
     "llama",
     {},
     [](PlanEditor& e) { e.Param("o_proj").init_std *= 2; },
     "model",
     "self_attn.o_proj.weight has another initial value than the model's"},
    {"OnesForZeros",
     "gpt2",
     {},
     [](PlanEditor& e) { e.Param("c_fc.bias").ones = true; },
     "model",
     "has another initial value"},
    {"WrongTransposition",
     "gpt2",
     {},
     [](PlanEditor& e) { e.Param("c_fc.weight").transposed = false; },
     "model",
     "has another transposition in files"},
    {"WrongName",
     "llama",
     {},
     [](PlanEditor& e) { e.Param("lm_head").name = "lm_tail.weight"; },
     "model",
     "the model's parameter lm_head.weight is missing"},
    {"AnotherFamily",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.mutable_model()->set_family(proto::QWEN2); },
     "model",
     "self_attn.q_proj.bias is missing"},
    {"AnotherWidth",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.mutable_model()->set_hidden(48); },
     "model",
     "has another shape than the model's"},
    {"AnotherPrecision",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.mutable_precision()->set_compute(proto::BF16); },
     "precision",
     "which is not precision.compute of the job"},
    {"AnotherGradientPrecision",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.mutable_precision()->set_gradient_reduce(proto::BF16); },
     "precision",
     "which is not precision.gradient_reduce of the job"},
    {"AnotherZero", "llama", kZero3,
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_zero(1); }, "training",
     "which is not zero 1"},
    {"AnotherRecompute",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.set_recompute(proto::RECOMPUTE_FULL); },
     "training",
     "which is not the job's recompute"},
    {"AnotherPlacement", "llama", kTensor, [](PlanEditor& e) { e.plan.ranks_per_node = 1; },
     "training", "ranks on a node"},
    {"NoResidualOfAttention",
     "llama",
     {},
     [](PlanEditor& e) {
       Instruction& add = e.At("layer_forward", Opcode::kAdd, 0);
       add.operands[0] = add.operands[1];
     },
     "model",
     "the loss is not the model's"},
    {"NoResidualOfFeedForward",
     "llama",
     {},
     [](PlanEditor& e) {
       Instruction& add = e.At("layer_forward", Opcode::kAdd, 1);
       add.operands[0] = add.operands[1];
     },
     "model",
     "the loss is not the model's"},
    {"NoGelu",
     "gpt2",
     {},
     [](PlanEditor& e) {
       const size_t at = e.Find("layer_forward", Opcode::kGeluForward);
       const Operand input = e.Block("layer_forward")[at].operands[0];
       e.Block("layer_forward")[at + 1].operands[0] = input;
       e.Erase("layer_forward", Opcode::kGeluForward);
     },
     "model",
     "the model has gelu_forward"},
    {"QueriesAndKeysExchanged",
     "gpt2",
     {},
     [](PlanEditor& e) { std::swap(e.Param("attn.q.weight").name, e.Param("attn.k.weight").name); },
     "model",
     "takes other weights than the model's"},
    {"WrongOffset",
     "llama",
     {},
     [](PlanEditor& e) {
       std::swap(e.Param("gate_proj").unit_offset, e.Param("up_proj").unit_offset);
     },
     "model",
     "takes other weights than the model's"},
    {"WrongVocabularyRows",
     "llama",
     {},
     [](PlanEditor& e) { e.Param("embed_tokens").shape[0] -= 1; },
     "training",
     "embed_tokens.weight has 259 of 258 along dimension 0"},
    {"AnotherVocabulary",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.mutable_model()->set_vocab(e.plan.job.model().vocab() - 1); },
     "training",
     "valid_vocab is 259, the job makes it 258"},
    {"AnotherNumberOfLayers",
     "llama",
     {},
     [](PlanEditor& e) { e.plan.job.mutable_model()->set_layers(1); },
     "training",
     ""},
    {"AnotherSchedule", "llama", kPipeline,
     [](PlanEditor& e) {
       e.plan.job.mutable_parallelism()->mutable_pipeline()->set_schedule(proto::GPIPE);
     },
     "training", "stage 0 keeps 4 layers of microbatches in flight, the job's schedule 16"},
    {"AnotherScheduleOfOneStage",
     "llama",
     {"parallelism.pipeline.schedule=gpipe"},
     [](PlanEditor& e) {
       e.plan.job.mutable_parallelism()->mutable_pipeline()->set_schedule(proto::ONE_F_ONE_B);
     },
     "training",
     "stage 0 keeps 32 layers of microbatches in flight, the job's schedule 4"},
    {"OtherStageLayers", "llama", kPipeline,
     [](PlanEditor& e) {
       e.plan.job.mutable_parallelism()->mutable_pipeline()->set_stage_layers(0, 1);
     },
     "training", "stage 0 keeps 4 layers of microbatches in flight, the job's schedule 2"},
    {"NoSequenceParallelism", "llama", kTensor,
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_sequence_parallel(true); },
     "training", "is not split over tp, which is not the job's sequence_parallel"},
    {"NeedlessSequenceParallelism",
     "gpt2",
     {"cluster.gpus_per_node=2", "mesh.tp=2", "parallelism.sequence_parallel=true"},
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_sequence_parallel(false); },
     "training",
     "is split over tp, which is not the job's sequence_parallel"},
    {"Zero2ThatSaysZero3",
     "llama",
     {"cluster.gpus_per_node=2", "mesh.dp_shard=2", "parallelism.zero=2"},
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_zero(3); },
     "training",
     "keeps whole weights, which is not zero 3 with prefetch 1"},
    {"Zero2OfOneMicrobatchThatSaysZero1",
     "llama",
     {"cluster.gpus_per_node=2", "mesh.dp_shard=2", "parallelism.zero=2", "batch.micro=4"},
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_zero(1); },
     "training",
     "keeps gradient shards, which is not zero 1"},
    {"Zero3ThatSaysZero2",
     "llama",
     {"cluster.gpus_per_node=2", "mesh.dp_shard=2", "parallelism.zero=3", "parallelism.prefetch=3"},
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_zero(2); },
     "training",
     "keeps weight shards, which is not zero 2"},
    {"AnotherPrefetch", "llama", kZero3,
     [](PlanEditor& e) { e.plan.job.mutable_parallelism()->set_prefetch(2); }, "training",
     "has memory for the weights of 2 layers, which is not zero 3 with prefetch 2"},
    {"ForwardLabelledRecomputation",
     "llama",
     {},
     [](PlanEditor& e) { e.At("layer_forward", Opcode::kMatmul).label = Label::kRecompute; },
     "training",
     "is labelled recompute, but nothing is computed again"},
    {"RecomputationLabelledForward",
     "llama",
     {"recompute=full"},
     [](PlanEditor& e) {
       for (Block& block : e.plan.blocks) {
         for (Instruction& i : block.instructions) {
           if (i.label == Label::kRecompute) i.label = Label::kForward;
         }
       }
     },
     "training",
     "computes again what was computed, but is not labelled recompute"},
    {"WrongFlops",
     "llama",
     {},
     [](PlanEditor& e) { e.At("layer_forward", Opcode::kMatmul).cost.flops = 1; },
     "cost",
     "says 1 FLOPs"},
    {"WrongBytesSent", "llama", kTensor,
     [](PlanEditor& e) { e.At("layer_forward", Opcode::kAllReduce).cost.bytes_sent += 1; }, "cost",
     "bytes read, written and sent"},
};

INSTANTIATE_TEST_SUITE_P(All, PlanEditTest, testing::ValuesIn(kEdits),
                         [](const auto& info) { return std::string(info.param.name); });

// A plan that adds a bias twice and takes its gradient twice is right, but not the job's model;
// without a family to compare with it is accepted, and with one gradient it is not.
TEST(PlanEditTest, AParameterThatIsUsedTwiceHasTwoGradients) {
  Plan plan = CompileMeshCase({"used_twice", "gpt2", {}});
  plan.job.mutable_model()->clear_family();
  PlanEditor editor(plan);
  editor.Duplicate("layer_forward", Opcode::kBiasForward);
  const VerifyResult once = VerifyPlan(plan);
  ASSERT_FALSE(once.violations.empty());
  EXPECT_EQ(once.violations[0].rule, "gradient") << once.violations[0].message;
  EXPECT_TRUE(absl::StrContains(once.violations[0].message, "uses of its parameters"))
      << once.violations[0].message;
  // The last bias of the backward pass is the first one of the forward pass.
  const auto& list = editor.Block("layer_backward");
  const auto biases = std::count_if(list.begin(), list.end(), [](const Instruction& i) {
    return i.opcode == Opcode::kBiasBackward;
  });
  const size_t at =
      editor.Find("layer_backward", Opcode::kBiasBackward, static_cast<int>(biases) - 1);
  const Instruction again = list[at];
  editor.Block("layer_backward")
      .insert(editor.Block("layer_backward").begin() + static_cast<std::ptrdiff_t>(at), again);
  for (const Violation& violation : VerifyPlan(plan).violations) {
    ADD_FAILURE() << violation.rule << ": " << violation.message;
  }
}

}  // namespace
}  // namespace planc
