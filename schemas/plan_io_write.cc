// Plan -> proto::Plan.
#include <vector>

#include "schemas/plan_io.h"

namespace planc {
namespace {

template <typename Values, typename Field>
void Append(const Values& values, Field* field) {
  field->Reserve(static_cast<int>(values.size()));
  for (const auto& value : values) field->Add(value);
}

void WriteLayout(const Layout& layout, proto::Plan::Buffer* image) {
  if (layout == Layout()) return;
  for (const AxisLayout& axis : layout.axes) {
    image->add_layout(static_cast<uint32_t>(axis.kind) + 4 * static_cast<uint8_t>(axis.dim));
  }
}

void WriteTables(const Plan& plan, proto::Plan* image) {
  for (const GroupKind& group : plan.groups) {
    proto::Plan::Group* out = image->add_groups();
    out->set_name(group.name);
    out->set_axes(group.axes);
    out->set_pipeline_ends(group.pipeline_ends);
  }
  for (const Pool& pool : plan.pools) {
    proto::Plan::Pool* out = image->add_pools();
    out->set_name(pool.name);
    out->set_kind(static_cast<uint32_t>(pool.kind));
    out->set_stride(pool.stride);
  }
  for (const Buffer& buffer : plan.buffers) {
    proto::Plan::Buffer* out = image->add_buffers();
    out->set_name(buffer.name);
    out->set_pool(buffer.pool);
    out->set_offset(buffer.offset);
    out->set_bytes(buffer.bytes);
    out->set_dtype(static_cast<uint32_t>(buffer.dtype));
    Append(buffer.shape, out->mutable_shape());
    WriteLayout(buffer.layout, out);
  }
  for (const Event& event : plan.events) {
    proto::Plan::Event* out = image->add_events();
    out->set_name(event.name);
    out->set_pool(event.pool);
    out->set_stream(static_cast<uint32_t>(event.stream));
  }
}

void WriteInstruction(const Instruction& instruction, proto::Plan::Instruction* image) {
  image->set_opcode(static_cast<uint32_t>(instruction.opcode));
  for (const Operand& operand : instruction.operands) {
    proto::Plan::Operand* out = image->add_operands();
    out->set_buffer(operand.buffer);
    out->set_binding(operand.binding);
    if (operand.offset != 0) out->set_offset(operand.offset);
    if (operand.shard_stride != 0) out->set_shard_stride(operand.shard_stride);
    out->set_bytes(operand.bytes);
  }
  Append(instruction.integers, image->mutable_integers());
  Append(instruction.reals, image->mutable_reals());
  image->set_stream(static_cast<uint32_t>(instruction.stream));
  for (const EventRef& wait : instruction.waits) {
    image->add_waits(wait.event);
    image->add_waits(wait.binding);
  }
  for (const EventRef& record : instruction.records) {
    image->add_records(record.event);
    image->add_records(record.binding);
  }
  image->set_group(instruction.group);
  image->set_label(static_cast<uint32_t>(instruction.label));
  image->set_flops(instruction.cost.flops);
  image->set_bytes_read(instruction.cost.bytes_read);
  image->set_bytes_written(instruction.cost.bytes_written);
  image->set_bytes_sent(instruction.cost.bytes_sent);
}

void WriteProgram(const Program& program, proto::Plan::Program* image) {
  for (const Repeat& repeat : program.steps) {
    proto::Plan::Repeat* out = image->add_steps();
    out->set_count(repeat.count);
    out->set_microbatch_step(repeat.microbatch_step);
    for (const Call& call : repeat.calls) {
      out->add_block(call.block);
      out->add_layer(call.layer);
      out->add_microbatch(call.microbatch);
      out->add_slot_count(static_cast<uint32_t>(call.slots.size()));
      for (int32_t slot : call.slots) out->add_slots(slot);
    }
  }
}

void WriteTraining(const Plan& plan, proto::Plan* image) {
  for (const Unit& unit : plan.units) {
    proto::Plan::Unit* out = image->add_units();
    out->set_name(unit.name);
    out->set_per_layer(unit.per_layer);
    out->set_tp_sharded(unit.tp_sharded);
    out->set_elements(unit.elements);
    out->set_decay_elements(unit.decay_elements);
    out->set_master(unit.master);
    out->set_first_moment(unit.first_moment);
    out->set_second_moment(unit.second_moment);
    out->set_snapshot(unit.snapshot);
    out->set_master_shard_stride(unit.master_shard_stride);
  }
  for (const Parameter& parameter : plan.params) {
    proto::Plan::Parameter* out = image->add_params();
    out->set_name(parameter.name);
    Append(parameter.shape, out->mutable_shape());
    out->set_unit(parameter.unit);
    out->set_unit_offset(parameter.unit_offset);
    Append(parameter.local_shape, out->mutable_local_shape());
    out->set_tp_dim(parameter.tp_dim);
    out->set_ones(parameter.ones);
    out->set_init_std(parameter.init_std);
    out->set_transposed(parameter.transposed);
  }
}

void WriteClass(const RankClass& rank_class, proto::Plan::RankClass* image) {
  image->set_stage(rank_class.stage);
  Append(rank_class.layers, image->mutable_layers());
  image->set_has_embedding(rank_class.has_embedding);
  image->set_has_head(rank_class.has_head);
  Append(rank_class.pool_slots, image->mutable_pool_slots());
  Append(rank_class.pool_bases, image->mutable_pool_bases());
  Append(rank_class.arena_bytes, image->mutable_arena_bytes());
  for (const Program& program : rank_class.programs) WriteProgram(program, image->add_programs());
}

}  // namespace

proto::Plan PlanToProto(const Plan& plan) {
  proto::Plan image;
  *image.mutable_job() = plan.job;
  Append(plan.mesh.size, image.mutable_mesh());
  image.set_ranks_per_node(plan.ranks_per_node);
  image.set_microbatches(plan.microbatches);
  image.set_parameters(plan.parameters);
  WriteTables(plan, &image);
  for (const Block& block : plan.blocks) {
    proto::Plan::Block* out = image.add_blocks();
    out->set_name(block.name);
    Append(block.bindings, out->mutable_bindings());
    for (const Instruction& instruction : block.instructions) {
      WriteInstruction(instruction, out->add_instructions());
    }
  }
  WriteTraining(plan, &image);
  for (const RankClass& rank_class : plan.classes) WriteClass(rank_class, image.add_classes());
  image.set_loss(plan.scalars.loss);
  image.set_grad_norm(plan.scalars.grad_norm);
  image.set_eval_loss(plan.scalars.eval_loss);
  return image;
}

}  // namespace planc
