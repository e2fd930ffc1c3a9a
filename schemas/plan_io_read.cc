// proto::Plan -> Plan, checking what the types of Plan cannot hold.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/plan_io.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr uint32_t kDTypeCount = 0
#define PLANC_COUNT_ROW(name, text, bytes) +1
    PLANC_DTYPES(PLANC_COUNT_ROW)
#undef PLANC_COUNT_ROW
    ;
constexpr uint32_t kLabelCount = 0
#define PLANC_COUNT_ROW(name, text) +1
    PLANC_LABELS(PLANC_COUNT_ROW)
#undef PLANC_COUNT_ROW
    ;
constexpr uint32_t kLayoutKindCount = 4;
constexpr size_t kMaximumName = 256;

template <typename Enum>
absl::Status ReadEnum(uint32_t value, uint32_t count, const char* what, Enum* out) {
  if (value >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: ", what, " ", value, " is not one of 0 to ", count - 1));
  }
  *out = static_cast<Enum>(value);
  return absl::OkStatus();
}

// A table of the plan, which must not be absurdly long.
absl::Status CheckLength(int64_t length, const char* what) {
  if (length <= kMaximumTableEntries) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("plan: ", Counted(length, "row"), " of ", what,
                                                 "; at most ", kMaximumTableEntries,
                                                 " can be written"));
}

// Names are printed as they are, so they must not hold terminal controls or broken UTF-8.
template <typename Rows>
absl::Status CheckNames(const Rows& rows, const char* what) {
  for (const auto& row : rows) {
    const bool printable = std::all_of(row.name().begin(), row.name().end(),
                                       [](char c) { return c >= 0x20 && c < 0x7f; });
    if (!printable || row.name().size() > kMaximumName) {
      return absl::InvalidArgumentError(
          absl::StrCat("plan: the name of a ", what, " is too long or not printable ASCII"));
    }
  }
  return CheckLength(rows.size(), what);
}

template <typename Field, typename Array>
absl::Status ReadArray(const Field& field, const char* what, Array* out) {
  if (field.size() != static_cast<int>(out->size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: ", field.size(), " ", what, " instead of ", out->size()));
  }
  std::copy(field.begin(), field.end(), out->begin());
  return absl::OkStatus();
}

absl::Status ReadMesh(const proto::Plan& image, Plan* plan) {
  PLANC_RETURN_IF_ERROR(ReadArray(image.mesh(), "mesh sizes", &plan->mesh.size));
  int64_t world = 1;
  for (int64_t size : plan->mesh.size) {
    if (size < 1 || size > kMaximumWorld || world * size > kMaximumWorld) {
      return absl::InvalidArgumentError(
          absl::StrCat("plan: a mesh of more than ", kMaximumWorld, " or of no ranks"));
    }
    world *= size;
  }
  return absl::OkStatus();
}

absl::Status ReadGroups(const proto::Plan& image, Plan* plan) {
  for (const proto::Plan::Group& in : image.groups()) {
    if (in.axes() >= (1u << kAxisCount)) {
      return absl::InvalidArgumentError(absl::StrCat("plan: group ", in.name(), " has axes ",
                                                     in.axes(), ", which is no set of axes"));
    }
    plan->groups.push_back({in.name(), static_cast<AxisSet>(in.axes()), in.pipeline_ends()});
  }
  return absl::OkStatus();
}

absl::Status ReadLayout(const proto::Plan::Buffer& in, Layout* out) {
  if (in.layout().empty()) return absl::OkStatus();
  std::array<uint32_t, kAxisCount> packed;
  PLANC_RETURN_IF_ERROR(ReadArray(in.layout(), "axis layouts", &packed));
  for (int i = 0; i < kAxisCount; ++i) {
    PLANC_RETURN_IF_ERROR(
        ReadEnum(packed[i] % 4, kLayoutKindCount, "axis layout", &out->axes[i].kind));
    if (packed[i] / 4 > 255) {
      return absl::InvalidArgumentError(absl::StrCat("plan: sharded dimension of ", in.name()));
    }
    out->axes[i].dim = static_cast<int8_t>(packed[i] / 4);
  }
  return absl::OkStatus();
}

absl::Status ReadTables(const proto::Plan& image, Plan* plan) {
  PLANC_RETURN_IF_ERROR(ReadGroups(image, plan));
  for (const proto::Plan::Pool& in : image.pools()) {
    Pool pool{in.name(), MemoryKind::kActivations, in.stride()};
    PLANC_RETURN_IF_ERROR(ReadEnum(in.kind(), kMemoryKindCount, "memory kind", &pool.kind));
    plan->pools.push_back(pool);
  }
  for (const proto::Plan::Buffer& in : image.buffers()) {
    Buffer buffer;
    buffer.name = in.name();
    buffer.pool = in.pool();
    buffer.offset = in.offset();
    buffer.bytes = in.bytes();
    PLANC_RETURN_IF_ERROR(ReadEnum(in.dtype(), kDTypeCount, "dtype", &buffer.dtype));
    buffer.shape.assign(in.shape().begin(), in.shape().end());
    PLANC_RETURN_IF_ERROR(ReadLayout(in, &buffer.layout));
    plan->buffers.push_back(std::move(buffer));
  }
  for (const proto::Plan::Event& in : image.events()) {
    Event event{in.name(), in.pool(), Stream::kCompute};
    PLANC_RETURN_IF_ERROR(ReadEnum(in.stream(), kStreamCount, "stream", &event.stream));
    plan->events.push_back(std::move(event));
  }
  return absl::OkStatus();
}

template <typename Field>
absl::Status ReadEventRefs(const Field& field, std::vector<EventRef>* out) {
  if (field.size() % 2 != 0) {
    return absl::InvalidArgumentError("plan: half a wait or record");
  }
  for (int i = 0; i < field.size(); i += 2) out->push_back({field[i], field[i + 1]});
  return absl::OkStatus();
}

absl::Status ReadInstruction(const proto::Plan::Instruction& in, Instruction* out) {
  PLANC_RETURN_IF_ERROR(ReadEnum(in.opcode(), kOpcodeCount, "opcode", &out->opcode));
  PLANC_RETURN_IF_ERROR(ReadEnum(in.stream(), kStreamCount, "stream", &out->stream));
  PLANC_RETURN_IF_ERROR(ReadEnum(in.label(), kLabelCount, "label", &out->label));
  out->operands.reserve(in.operands_size());
  for (const proto::Plan::Operand& operand : in.operands()) {
    out->operands.push_back({operand.buffer(), operand.binding(), operand.offset(),
                             operand.shard_stride(), operand.bytes()});
  }
  out->integers.assign(in.integers().begin(), in.integers().end());
  out->reals.assign(in.reals().begin(), in.reals().end());
  PLANC_RETURN_IF_ERROR(ReadEventRefs(in.waits(), &out->waits));
  PLANC_RETURN_IF_ERROR(ReadEventRefs(in.records(), &out->records));
  out->group = in.group();
  out->cost = {in.flops(), in.bytes_read(), in.bytes_written(), in.bytes_sent()};
  return absl::OkStatus();
}

absl::Status ReadBlocks(const proto::Plan& image, Plan* plan) {
  for (const proto::Plan::Block& in : image.blocks()) {
    Block block;
    block.name = in.name();
    block.bindings.assign(in.bindings().begin(), in.bindings().end());
    block.instructions.resize(in.instructions_size());
    for (int i = 0; i < in.instructions_size(); ++i) {
      PLANC_RETURN_IF_ERROR(WithContext(ReadInstruction(in.instructions(i), &block.instructions[i]),
                                        absl::StrCat("block ", in.name(), " instruction ", i)));
    }
    plan->blocks.push_back(std::move(block));
  }
  return absl::OkStatus();
}

absl::Status ReadCalls(const proto::Plan::Repeat& in, Repeat* out) {
  const int calls = in.block_size();
  if (in.layer_size() != calls || in.microbatch_size() != calls || in.slot_count_size() != calls) {
    return absl::InvalidArgumentError("plan: the columns of a repeat differ in length");
  }
  out->calls.resize(calls);
  int64_t slot = 0;
  for (int i = 0; i < calls; ++i) {
    const int64_t end = slot + in.slot_count(i);
    if (end > in.slots_size()) return absl::InvalidArgumentError("plan: a call lacks slots");
    Call& call = out->calls[i];
    call.block = in.block(i);
    call.layer = in.layer(i);
    call.microbatch = in.microbatch(i);
    call.slots.assign(in.slots().begin() + slot, in.slots().begin() + end);
    slot = end;
  }
  if (slot != in.slots_size()) {
    return absl::InvalidArgumentError("plan: a repeat has slots that belong to no call");
  }
  return absl::OkStatus();
}

absl::Status ReadProgram(const proto::Plan::Program& in, Program* out) {
  int64_t expanded = 0;
  for (const proto::Plan::Repeat& repeat : in.steps()) {
    Repeat& step = out->steps.emplace_back();
    step.count = repeat.count();
    step.microbatch_step = repeat.microbatch_step();
    const int64_t length = std::max(repeat.block_size(), 1);
    if (step.count < 1 || step.count > (kMaximumExpandedCalls - expanded) / length) {
      return absl::InvalidArgumentError(absl::StrCat(
          "plan: a repeat of ", Counted(length, "call"), " runs ", Counted(step.count, "time"),
          "; at most ", Counted(kMaximumExpandedCalls, "call"), " in all"));
    }
    expanded += step.count * length;
    PLANC_RETURN_IF_ERROR(ReadCalls(repeat, &step));
  }
  return absl::OkStatus();
}

absl::Status ReadClass(const proto::Plan::RankClass& in, RankClass* out) {
  out->stage = in.stage();
  out->layers.assign(in.layers().begin(), in.layers().end());
  out->has_embedding = in.has_embedding();
  out->has_head = in.has_head();
  out->pool_slots.assign(in.pool_slots().begin(), in.pool_slots().end());
  out->pool_bases.assign(in.pool_bases().begin(), in.pool_bases().end());
  PLANC_RETURN_IF_ERROR(ReadArray(in.arena_bytes(), "arenas", &out->arena_bytes));
  if (in.programs_size() != kProgramCount) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: ", in.programs_size(), " programs instead of ", kProgramCount));
  }
  for (int i = 0; i < kProgramCount; ++i) {
    PLANC_RETURN_IF_ERROR(ReadProgram(in.programs(i), &out->programs[i]));
  }
  return absl::OkStatus();
}

void ReadTraining(const proto::Plan& image, Plan* plan) {
  for (const proto::Plan::Unit& in : image.units()) {
    plan->units.push_back({in.name(), in.per_layer(), in.tp_sharded(), in.elements(),
                           in.decay_elements(), in.master(), in.first_moment(), in.second_moment(),
                           in.snapshot(), in.master_shard_stride()});
  }
  for (const proto::Plan::Parameter& in : image.params()) {
    Parameter& out = plan->params.emplace_back();
    out.name = in.name();
    out.shape.assign(in.shape().begin(), in.shape().end());
    out.unit = in.unit();
    out.unit_offset = in.unit_offset();
    out.local_shape.assign(in.local_shape().begin(), in.local_shape().end());
    out.tp_dim = in.tp_dim();
    out.ones = in.ones();
    out.init_std = in.init_std();
    out.transposed = in.transposed();
  }
}

}  // namespace

absl::StatusOr<Plan> PlanFromProto(const proto::Plan& image) {
  PLANC_RETURN_IF_ERROR(CheckNames(image.groups(), "group"));
  PLANC_RETURN_IF_ERROR(CheckNames(image.pools(), "pool"));
  PLANC_RETURN_IF_ERROR(CheckNames(image.buffers(), "buffer"));
  PLANC_RETURN_IF_ERROR(CheckNames(image.events(), "event"));
  PLANC_RETURN_IF_ERROR(CheckNames(image.blocks(), "block"));
  PLANC_RETURN_IF_ERROR(CheckNames(image.units(), "unit"));
  PLANC_RETURN_IF_ERROR(CheckNames(image.params(), "parameter"));
  PLANC_RETURN_IF_ERROR(CheckLength(image.classes_size(), "rank class"));
  Plan plan;
  plan.job = image.job();
  plan.job.DiscardUnknownFields();
  PLANC_RETURN_IF_ERROR(ReadMesh(image, &plan));
  plan.ranks_per_node = image.ranks_per_node();
  plan.microbatches = image.microbatches();
  plan.parameters = image.parameters();
  PLANC_RETURN_IF_ERROR(ReadTables(image, &plan));
  PLANC_RETURN_IF_ERROR(ReadBlocks(image, &plan));
  ReadTraining(image, &plan);
  for (const proto::Plan::RankClass& in : image.classes()) {
    PLANC_RETURN_IF_ERROR(WithContext(ReadClass(in, &plan.classes.emplace_back()),
                                      absl::StrCat("rank class of stage ", in.stage())));
  }
  plan.scalars = {image.loss(), image.grad_norm(), image.eval_loss()};
  return plan;
}

}  // namespace planc
