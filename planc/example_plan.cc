#include "planc/example_plan.h"

#include <string>
#include <utility>
#include <vector>

namespace planc {
namespace {

constexpr int64_t kBytes = 4096;
constexpr int kActs = 0;
constexpr int kWeights = 1;
constexpr int kGradients = 2;
constexpr int kState = 3;

enum BufferIndex { kX, kY, kW, kDw, kMaster, kFirst, kSecond, kLoss };
enum GroupIndex { kTpGroup, kShardGroup, kPipeline };
enum BlockIndex { kForward, kBackward, kSendX, kRecvX, kSendDy, kRecvDy, kReduce };

Instruction Make(Opcode opcode, Stream stream, Label label, std::vector<int> buffers) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.stream = stream;
  instruction.label = label;
  // Of the two pools that a block binds, activations and gradients come first.
  for (const int buffer : buffers) {
    const int binding = buffer == kW || (buffer >= kMaster && buffer <= kSecond) ? 1 : 0;
    instruction.operands.push_back({buffer, binding, 0, 0, kBytes});
  }
  return instruction;
}

Instruction Product(Label label, std::vector<int> buffers) {
  Instruction product = Make(Opcode::kMatmul, Stream::kCompute, label, std::move(buffers));
  product.integers = {32, 32, 32, 0, 0};
  product.cost = {2e6, 2 * kBytes, kBytes, 0};
  return product;
}

Instruction Transfer(Opcode opcode, Stream stream, int buffer, int64_t delta) {
  Instruction transfer = Make(opcode, stream, Label::kPipeline, {buffer});
  transfer.integers = {kBytes / 4, delta};
  transfer.group = kPipeline;
  if (opcode == Opcode::kSend) transfer.cost = {0, kBytes, 0, kBytes};
  return transfer;
}

std::vector<Block> Blocks() {
  Instruction reduce = Make(Opcode::kAllReduce, Stream::kCompute, Label::kForward, {kY});
  reduce.integers = {kBytes / 4, 0};
  reduce.group = kTpGroup;
  reduce.cost = {0, kBytes, kBytes, kBytes};
  reduce.records = {{0, 0}};
  Instruction scatter =
      Make(Opcode::kReduceScatter, Stream::kData, Label::kGradientSync, {kDw, kDw});
  scatter.integers = {kBytes / 8};
  scatter.group = kShardGroup;
  scatter.cost = {0, kBytes, kBytes / 2, kBytes / 2};
  scatter.records = {{1, 0}};
  Instruction update = Make(Opcode::kAdamw, Stream::kCompute, Label::kOptimizer,
                            {kDw, kDw, kMaster, kFirst, kSecond});
  update.integers = {kBytes / 8, kBytes / 8};
  update.waits = {{1, 0}};
  update.cost = {1e4, 3 * kBytes, 3 * kBytes, 0};
  Instruction send = Transfer(Opcode::kSend, Stream::kSendNext, kY, 1);
  send.waits = {{0, 0}};
  const std::vector<int> with_weights = {kActs, kWeights};
  return {
      {"layer_forward", with_weights, {Product(Label::kForward, {kX, kW, kY}), reduce}},
      {"layer_backward", with_weights, {Product(Label::kBackward, {kY, kW, kX})}},
      {"send_forward", {kActs}, {send}},
      {"recv_forward", {kActs}, {Transfer(Opcode::kRecv, Stream::kRecvPrevious, kX, -1)}},
      {"send_backward", {kActs}, {Transfer(Opcode::kSend, Stream::kSendPrevious, kX, -1)}},
      {"recv_backward", {kActs}, {Transfer(Opcode::kRecv, Stream::kRecvNext, kY, 1)}},
      {"update", {kGradients, kState}, {scatter, update}},
  };
}

RankClass MakeClass(int stage) {
  RankClass rank_class;
  rank_class.stage = stage;
  rank_class.layers = {2 * stage, 2 * stage + 1};
  rank_class.has_embedding = stage == 0;
  rank_class.has_head = stage == 1;
  rank_class.pool_slots = {4, 2, 2, 2};
  rank_class.pool_bases = {0, 0, 0, 0};
  rank_class.arena_bytes = {2 * kBytes, 2 * kBytes, 6 * kBytes, 8 * kBytes, 0, 0, 0};
  std::vector<Call> calls;
  for (int m = 0; m < 4; ++m) {
    if (stage == 1) calls.push_back({kRecvX, -1, m, {m}});
    for (int layer : rank_class.layers) calls.push_back({kForward, layer, m, {m, layer % 2}});
    if (stage == 0) calls.push_back({kSendX, -1, m, {m}});
  }
  for (int m = 0; m < 4; ++m) {
    if (stage == 0) calls.push_back({kRecvDy, -1, m, {m}});
    for (int layer : rank_class.layers) calls.push_back({kBackward, layer, m, {m, layer % 2}});
    if (stage == 1) calls.push_back({kSendDy, -1, m, {m}});
  }
  for (int layer : rank_class.layers) {
    calls.push_back({kReduce, layer, -1, {layer % 2, layer % 2}});
  }
  rank_class.programs[static_cast<int>(ProgramKind::kStep)] = FoldCalls(calls);
  return rank_class;
}

proto::Job ExampleJob() {
  proto::Job job;
  job.set_job("example");
  proto::Model* model = job.mutable_model();
  model->set_family(proto::LLAMA);
  model->set_layers(4);
  model->set_hidden(64);
  model->set_heads(4);
  model->set_kv_heads(2);
  model->set_vocab(256);
  job.mutable_cluster()->set_nodes(2);
  job.mutable_cluster()->set_gpus_per_node(4);
  job.mutable_cluster()->set_device("host");
  job.mutable_cluster()->set_memory(1 << 20);
  job.mutable_mesh()->set_pp(2);
  job.mutable_mesh()->set_dp_shard(2);
  job.mutable_mesh()->set_tp(2);
  job.mutable_parallelism()->set_zero(2);
  job.mutable_parallelism()->mutable_pipeline()->set_schedule(proto::GPIPE);
  job.mutable_parallelism()->mutable_pipeline()->set_virtual_stages(1);
  job.mutable_batch()->set_global(8);
  job.mutable_batch()->set_micro(1);
  job.mutable_batch()->set_sequence(32);
  proto::Precision* precision = job.mutable_precision();
  precision->set_compute(proto::FP32);
  precision->set_master(proto::FP32);
  precision->set_gradient_reduce(proto::FP32);
  precision->set_optimizer_state(proto::FP32);
  job.set_recompute(proto::RECOMPUTE_NONE);
  return job;
}

}  // namespace

Plan ExamplePlan() {
  Plan plan;
  plan.job = ExampleJob();
  plan.mesh.size = {2, 1, 2, 1, 2};
  plan.ranks_per_node = 4;
  plan.microbatches = 4;
  plan.parameters = 4 * 2 * 1024;
  plan.groups = {{"tp", AxisBit(Axis::kTp), false},
                 {"dp_shard", AxisBit(Axis::kDpShard), false},
                 {"pp", AxisBit(Axis::kPp), false}};
  plan.pools = {{"acts", MemoryKind::kActivations, 2 * kBytes},
                {"weights", MemoryKind::kWeights, kBytes},
                {"gradients", MemoryKind::kGradients, kBytes},
                {"state", MemoryKind::kOptimizer, 3 * kBytes}};
  const auto add = [&](const char* name, int pool, int64_t offset) {
    plan.buffers.push_back({name, pool, offset, kBytes, DType::kF32, {32, 32}, {}});
  };
  add("x", kActs, 0);
  add("y", kActs, kBytes);
  add("w", kWeights, 0);
  add("dw", kGradients, 0);
  add("master", kState, 0);
  add("m", kState, kBytes);
  add("v", kState, 2 * kBytes);
  plan.events = {{"y_done", kActs, Stream::kCompute}, {"dw_reduced", kGradients, Stream::kData}};
  plan.blocks = Blocks();
  // Two parameters of half the unit each, on each tp rank.
  plan.units = {{"layer.sharded", true, true, 1024, 1024, kMaster, kFirst, kSecond, -1, 0}};
  plan.params = {{"model.layers.{layer}.self_attn.q_proj.weight",
                  {64, 16},
                  0,
                  0,
                  {32, 16},
                  0,
                  false,
                  0.02,
                  false},
                 {"model.layers.{layer}.self_attn.o_proj.weight",
                  {16, 64},
                  0,
                  512,
                  {16, 32},
                  1,
                  false,
                  0.01,
                  false}};
  plan.classes = {MakeClass(0), MakeClass(1)};
  return plan;
}

}  // namespace planc
