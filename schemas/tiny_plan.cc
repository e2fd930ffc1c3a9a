#include "schemas/tiny_plan.h"

#include <sstream>

#include "schemas/collective.h"
#include "schemas/verify_costs.h"
#include "schemas/workspace.h"

namespace planc {
namespace {

constexpr int64_t kVocab = 8;
constexpr int64_t kHidden = 8;
constexpr int64_t kTokens = 4;  // one sequence
constexpr int kMicrobatches = 2;
constexpr int64_t kElements = kVocab * kHidden;

void SetJob(proto::Job* job, int stages) {
  job->set_job("tiny");
  job->mutable_model()->set_layers(0);
  job->mutable_model()->set_vocab(kVocab);
  job->mutable_model()->set_hidden(kHidden);
  job->mutable_batch()->set_global(kMicrobatches);
  job->mutable_batch()->set_micro(1);
  job->mutable_batch()->set_sequence(kTokens);
  job->mutable_mesh()->set_pp(stages);
  job->mutable_mesh()->set_dp_replicate(1);
  job->mutable_mesh()->set_dp_shard(1);
  job->mutable_mesh()->set_cp(1);
  job->mutable_mesh()->set_tp(1);
  job->mutable_optimizer()->set_clip_norm(1.0);
}

template <typename Items>
int IndexOf(const Items& items, const std::string& name) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int TinyPlan::PoolOf(const std::string& name) const { return IndexOf(plan.pools, name); }
int TinyPlan::BufferOf(const std::string& name) const { return IndexOf(plan.buffers, name); }
int TinyPlan::BlockOf(const std::string& name) const { return IndexOf(plan.blocks, name); }

void TinyPlan::AddPool(const std::string& name, MemoryKind kind, std::vector<int32_t> slots) {
  plan.pools.push_back({name, kind, 0});
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    plan.classes[c].pool_slots.push_back(slots.size() == 1 ? slots[0] : slots[c]);
  }
}

// Buffers of one pool lie one after another.
void TinyPlan::AddBuffer(const std::string& name, const std::string& pool, DType dtype,
                         std::vector<int64_t> shape, const Layout& layout) {
  Buffer buffer;
  buffer.name = name;
  buffer.pool = PoolOf(pool);
  buffer.offset = plan.pools[buffer.pool].stride;
  buffer.dtype = dtype;
  buffer.bytes = SizeOf(dtype);
  for (int64_t n : shape) buffer.bytes *= n;
  buffer.shape = std::move(shape);
  buffer.layout = layout;
  plan.pools[buffer.pool].stride =
      (buffer.offset + buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
  plan.buffers.push_back(std::move(buffer));
}

void TinyPlan::AddUnit(const std::string& name, std::vector<int32_t> slots) {
  AddPool("weights." + name, MemoryKind::kWeights, slots);
  AddPool("gradients." + name, MemoryKind::kGradients, slots);
  AddPool("adam." + name, MemoryKind::kOptimizer, slots);
  AddBuffer("flat." + name, "weights." + name, DType::kF32, {kElements});
  AddBuffer("d.flat." + name, "gradients." + name, DType::kF32, {kElements});
  AddBuffer("m." + name, "adam." + name, DType::kF32, {kElements});
  AddBuffer("v." + name, "adam." + name, DType::kF32, {kElements});
  for (const bool gradient : {false, true}) {
    Buffer view = plan.buffers[BufferOf((gradient ? "d.flat." : "flat.") + name)];
    view.name = (gradient ? "d." : "w.") + name;
    view.shape = {kVocab, kHidden};
    plan.buffers.push_back(view);
  }
  Unit unit;
  unit.name = name;
  unit.elements = unit.decay_elements = kElements;
  unit.master = BufferOf("flat." + name);
  unit.first_moment = BufferOf("m." + name);
  unit.second_moment = BufferOf("v." + name);
  Parameter parameter;
  parameter.name = name + ".weight";
  parameter.shape = parameter.local_shape = {kVocab, kHidden};
  parameter.unit = static_cast<int>(plan.units.size());
  parameter.init_std = 0.02;
  plan.units.push_back(unit);
  plan.params.push_back(parameter);
  plan.parameters += kElements;
}

int TinyPlan::Bind(Block& block, int pool) {
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    if (block.bindings[i] == pool) return static_cast<int>(i);
  }
  block.bindings.push_back(pool);
  return static_cast<int>(block.bindings.size()) - 1;
}

Instruction& TinyPlan::Add(const std::string& name, Opcode opcode,
                           std::vector<std::string> operands, std::vector<int64_t> integers,
                           std::vector<double> reals, Stream stream, const std::string& group) {
  if (BlockOf(name) < 0) plan.blocks.push_back({name, {}, {}});
  Block& block = plan.blocks[BlockOf(name)];
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.integers = std::move(integers);
  instruction.reals = std::move(reals);
  instruction.stream = stream;
  instruction.group = group.empty() ? -1 : IndexOf(plan.groups, group);
  for (const std::string& operand : operands) {
    const int buffer = BufferOf(operand);
    const Buffer& b = plan.buffers[buffer];
    instruction.operands.push_back({buffer, Bind(block, b.pool), 0, 0, b.bytes});
  }
  block.instructions.push_back(instruction);
  return block.instructions.back();
}

// `waiter` waits for what `recorder` did to the slot of its first operand.
void TinyPlan::Link(const std::string& event, Instruction& recorder, Instruction& waiter) {
  int index = IndexOf(plan.events, event);
  const int pool = plan.buffers[recorder.operands[0].buffer].pool;
  if (index < 0) {
    index = static_cast<int>(plan.events.size());
    plan.events.push_back({event, pool, recorder.stream});
    recorder.records.push_back({index, recorder.operands[0].binding});
  }
  for (const Operand& operand : waiter.operands) {
    if (plan.buffers[operand.buffer].pool != pool) continue;
    waiter.waits.push_back({index, operand.binding});
    return;
  }
}

void TinyPlan::Call(Program& program, const std::string& name, int microbatch) {
  planc::Call call;
  call.block = BlockOf(name);
  call.microbatch = microbatch;
  for (int pool : plan.blocks[call.block].bindings) {
    const std::string& pool_name = plan.pools[pool].name;
    const bool by_microbatch = pool_name == "x" || pool_name == "dx" || pool_name == "tokens";
    call.slots.push_back(by_microbatch ? microbatch : 0);
  }
  if (program.steps.empty()) program.steps.emplace_back();
  program.steps[0].calls.push_back(call);
}

void TinyPlan::AddBlocks(int stages) {
  const std::vector<int64_t> product = {kTokens, kVocab, kHidden, 0, 1};
  const double scale = 1.0 / (kMicrobatches * kTokens);
  for (const char* unit : {"table", "output"}) {
    const std::string n = unit;
    const int64_t index = n == "table" ? 0 : 1;
    Add("init." + n, Opcode::kInitParameters, {"flat." + n}, {index});
    Add("zero." + n, Opcode::kZero, {"d.flat." + n});
    Add("norm." + n, Opcode::kSumSquares, {"d.flat." + n, "norm_sum"}, {kElements, 0});
    Add("adamw." + n, Opcode::kAdamw,
        {"d.flat." + n, "coefficient", "flat." + n, "m." + n, "v." + n}, {kElements, kElements});
  }
  Add("begin", Opcode::kZero, {"loss"});
  Add("begin", Opcode::kZero, {"norm_sum"});
  Add("begin", Opcode::kZero, {"eval_loss"});
  Add("embed", Opcode::kLoadTokens, {"tokens"}, {kTokens});
  Add("embed", Opcode::kEmbeddingForward, {"tokens", "w.table", "x"}, {kTokens, kHidden, kVocab});
  for (const std::string head : {"head", "head_eval"}) {
    Add(head, Opcode::kLoadTargets, {"targets"}, {kTokens});
    Add(head, Opcode::kMatmul, {"x", "w.output", "logits", "workspace"}, product);
    Add(head, Opcode::kLossMax, {"logits", "max"}, {kTokens, kVocab, kVocab});
    Add(head, Opcode::kLossSumExp, {"logits", "max", "targets", "pair"}, {kTokens, kVocab, kVocab});
  }
  Add("head_eval", Opcode::kLossForward, {"max", "pair", "targets", "eval_loss"}, {kTokens},
      {scale});
  Add("head", Opcode::kLossGradient, {"max", "pair", "targets", "logits", "loss"},
      {kTokens, kVocab, kVocab}, {scale});
  Add("head", Opcode::kMatmulAdd, {"logits", "x", "d.output", "workspace"},
      {kVocab, kHidden, kTokens, 1, 0});
  Add("head", Opcode::kMatmul, {"logits", "w.output", "dx", "workspace"},
      {kTokens, kHidden, kVocab, 0, 0});
  Add("embed_backward", Opcode::kEmbeddingBackward, {"tokens", "dx", "d.table"},
      {kTokens, kHidden, kVocab});
  if (stages > 1) {
    Add("finish", Opcode::kAllReduce, {"norm_sum", "scratch"}, {1, 0}, {}, Stream::kCompute,
        "world");
    Add("finish", Opcode::kAllReduce, {"loss", "scratch"}, {1, 0}, {}, Stream::kCompute, "world");
    Add("finish_eval", Opcode::kAllReduce, {"eval_loss", "scratch"}, {1, 0}, {}, Stream::kCompute,
        "world");
    const int64_t count = kTokens * kHidden;
    Add("send_x", Opcode::kSend, {"x"}, {count, 1}, {}, Stream::kSendNext, "pp");
    Add("recv_x", Opcode::kRecv, {"x"}, {count, -1}, {}, Stream::kRecvPrevious, "pp");
    Add("send_dx", Opcode::kSend, {"dx"}, {count, -1}, {}, Stream::kSendPrevious, "pp");
    Add("recv_dx", Opcode::kRecv, {"dx"}, {count, 1}, {}, Stream::kRecvNext, "pp");
    plan.events.push_back({"x ready", PoolOf("x"), Stream::kCompute});
    plan.events.push_back({"dx ready", PoolOf("dx"), Stream::kCompute});
    At("embed", 1).records.push_back({0, At("embed", 1).operands[2].binding});
    At("send_x", 0).waits.push_back({0, 0});
    Link("x received", At("recv_x", 0), At("head", 1));
    Link("x received", At("recv_x", 0), At("head_eval", 1));
    At("head", 6).records.push_back({1, At("head", 6).operands[2].binding});
    At("send_dx", 0).waits.push_back({1, 0});
    Link("dx received", At("recv_dx", 0), At("embed_backward", 0));
  }
  const bool reduced = stages > 1;
  Add("clip", Opcode::kClipCoefficient,
      {reduced ? "norm_sum.all" : "norm_sum", reduced ? "loss.all" : "loss", "coefficient",
       "grad_norm"},
      {}, {1.0});
}

void TinyPlan::AddSchedule(int stage, int stages, const std::string& order) {
  RankClass& rank_class = plan.classes[stage];
  const bool first = stage == 0, last = stage == stages - 1;
  const auto program = [&](ProgramKind kind) -> Program& {
    return rank_class.programs[static_cast<int>(kind)];
  };
  std::vector<std::string> units;
  if (first) units.push_back("table");
  if (last) units.push_back("output");
  for (const std::string& unit : units) Call(program(ProgramKind::kInit), "init." + unit, -1);
  Program& step = program(ProgramKind::kStep);
  Program& eval = program(ProgramKind::kEval);
  for (Program* p : {&step, &eval}) Call(*p, "begin", -1);
  for (const std::string& unit : units) Call(step, "zero." + unit, -1);
  std::istringstream words(order);
  for (std::string word; words >> word;) {
    const int m = word[1] - '0';
    if (word[0] == 'F') {
      for (Program* p : {&step, &eval}) {
        if (first) Call(*p, "embed", m);
        if (!last) Call(*p, "send_x", m);
        if (!first) Call(*p, "recv_x", m);
        if (last) Call(*p, p == &step ? "head" : "head_eval", m);
      }
    } else {
      if (!first) Call(step, "send_dx", m);
      if (!last) Call(step, "recv_dx", m);
      if (first) Call(step, "embed_backward", m);
    }
  }
  for (const std::string& unit : units) Call(step, "norm." + unit, -1);
  if (stages > 1) Call(step, "finish", -1);
  if (stages > 1) Call(eval, "finish_eval", -1);
  Call(step, "clip", -1);
  for (const std::string& unit : units) Call(step, "adamw." + unit, -1);
}

void TinyPlan::PlacePools() {
  for (RankClass& rank_class : plan.classes) {
    for (size_t p = 0; p < plan.pools.size(); ++p) {
      int64_t& arena = rank_class.arena_bytes[static_cast<int>(plan.pools[p].kind)];
      rank_class.pool_bases.push_back(arena);
      arena += rank_class.pool_slots[p] * plan.pools[p].stride;
    }
  }
}

TinyPlan::TinyPlan(int stages, const std::string& first, const std::string& second) {
  SetJob(&plan.job, stages);
  plan.mesh.size = {stages, 1, 1, 1, 1};
  plan.microbatches = kMicrobatches;
  plan.groups = {{"pp", AxisBit(Axis::kPp), false}, {"world", AxisBit(Axis::kPp), false}};
  plan.classes.resize(stages);
  for (int c = 0; c < stages; ++c) {
    plan.classes[c].stage = c;
    plan.classes[c].has_embedding = c == 0;
    plan.classes[c].has_head = c == stages - 1;
  }
  const bool split = stages > 1;
  AddUnit("table", split ? std::vector<int32_t>{1, 0} : std::vector<int32_t>{1});
  AddUnit("output", split ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{1});
  for (const char* pool : {"tokens", "x", "dx"}) {
    AddPool(pool, MemoryKind::kActivations, {kMicrobatches});
  }
  AddPool("head", MemoryKind::kActivations, {1});
  AddPool("scalars", MemoryKind::kWorkspace, {1});
  AddBuffer("tokens", "tokens", DType::kI32, {kTokens});
  AddBuffer("x", "x", DType::kF32, {kTokens, kHidden});
  AddBuffer("dx", "dx", DType::kF32, {kTokens, kHidden});
  AddBuffer("targets", "head", DType::kI32, {kTokens});
  AddBuffer("logits", "head", DType::kF32, {kTokens, kVocab});
  AddBuffer("max", "head", DType::kF32, {kTokens});
  AddBuffer("pair", "head", DType::kF32, {kTokens, 2});
  AddBuffer("workspace", "head", DType::kU8, {MatmulWorkspaceBudget(kVocab, kVocab, kVocab)});
  Layout sum;
  if (split) sum[Axis::kPp] = AxisLayout::PartialSum();
  for (const char* scalar : {"loss", "norm_sum", "eval_loss"}) {
    AddBuffer(scalar, "scalars", DType::kF64, {1}, sum);
    Buffer after = plan.buffers.back();  // the same scalar after its sum over the stages
    after.name = std::string(scalar) + ".all";
    after.layout = Layout();
    plan.buffers.push_back(after);
  }
  AddBuffer("coefficient", "scalars", DType::kF32, {1});
  AddBuffer("grad_norm", "scalars", DType::kF32, {1});
  AddBuffer("scratch", "scalars", DType::kU8, {AllReduceScratchBytes(1, 2, 8)});
  AddBlocks(stages);
  AddSchedule(0, stages, first);
  if (stages > 1) AddSchedule(1, stages, second);
  plan.scalars = {BufferOf("loss"), BufferOf("grad_norm"), BufferOf("eval_loss")};
  PlacePools();
  for (Block& block : plan.blocks) {
    for (Instruction& instruction : block.instructions) {
      instruction.cost = verifying::CostOf(plan, instruction);
    }
  }
}

}  // namespace planc
