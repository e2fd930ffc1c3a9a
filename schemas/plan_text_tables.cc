// Canonical text of the plan's tables and rank classes.
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "schemas/counted.h"
#include "schemas/plan_text.h"

namespace planc {
namespace {

std::string BufferName(const Plan& plan, int buffer) {
  if (buffer < 0) return "none";
  if (static_cast<size_t>(buffer) >= plan.buffers.size()) return absl::StrCat("?", buffer);
  return plan.buffers[buffer].name;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return "[" + absl::StrJoin(shape, ",") + "]";
}

std::string AxesText(const GroupKind& group) {
  std::vector<std::string> names;
  for (Axis axis : kAllAxes) {
    if ((group.axes & AxisBit(axis)) == 0) continue;
    const bool ends = axis == Axis::kPp && group.pipeline_ends;
    names.push_back(absl::StrCat(AxisName(axis), ends ? " (first and last)" : ""));
  }
  return names.empty() ? "no axis" : absl::StrJoin(names, ", ");
}

void AppendHeader(const Plan& plan, std::string* text) {
  absl::StrAppend(text, "plan ", plan.job.job(), "\n  mesh");
  for (Axis axis : kAllAxes) absl::StrAppend(text, " ", AxisName(axis), "=", plan.mesh[axis]);
  absl::StrAppend(text, "\n  ranks ", plan.mesh.WorldSize(), ", ", plan.ranks_per_node,
                  " per node\n  microbatches ", plan.microbatches, "\n  parameters ",
                  plan.parameters, "\n");
  absl::StrAppend(text, "  scalars loss=", BufferName(plan, plan.scalars.loss),
                  " grad_norm=", BufferName(plan, plan.scalars.grad_norm),
                  " eval_loss=", BufferName(plan, plan.scalars.eval_loss), "\n");
}

void AppendMemoryTables(const Plan& plan, std::string* text) {
  absl::StrAppend(text, "\ngroups\n");
  for (const GroupKind& group : plan.groups) {
    absl::StrAppendFormat(text, "  %-14s %s over %s\n", group.name,
                          Counted(GroupSize(plan.mesh, group), "rank"), AxesText(group));
  }
  absl::StrAppend(text, "\npools\n");
  for (const Pool& pool : plan.pools) {
    absl::StrAppendFormat(text, "  %-31s %-13s stride %d\n", pool.name, MemoryKindName(pool.kind),
                          pool.stride);
  }
  absl::StrAppend(text, "\nbuffers\n");
  for (const Buffer& buffer : plan.buffers) {
    absl::StrAppendFormat(text, "  %-26s %-18s %-18s %d bytes at %s+%d\n", buffer.name,
                          DTypeName(buffer.dtype) + ShapeText(buffer.shape),
                          LayoutText(buffer.layout), buffer.bytes, PoolName(plan, buffer.pool),
                          buffer.offset);
  }
  absl::StrAppend(text, "\nevents\n");
  for (const Event& event : plan.events) {
    absl::StrAppendFormat(text, "  %-24s %-9s per slot of %s\n", event.name,
                          StreamName(event.stream), PoolName(plan, event.pool));
  }
}

std::string InitText(const Parameter& parameter) {
  if (parameter.ones) return "ones";
  if (parameter.init_std == 0) return "zeros";
  return absl::StrCat("normal(", RealText(parameter.init_std), ")");
}

void AppendTrainingTables(const Plan& plan, std::string* text) {
  absl::StrAppend(text, "\nunits\n");
  for (const Unit& unit : plan.units) {
    absl::StrAppendFormat(text, "  %-16s %d elements, %d decay%s%s  master=%s m=%s v=%s", unit.name,
                          unit.elements, unit.decay_elements, unit.per_layer ? ", per layer" : "",
                          unit.tp_sharded ? ", tp sharded" : "", BufferName(plan, unit.master),
                          BufferName(plan, unit.first_moment),
                          BufferName(plan, unit.second_moment));
    if (unit.master_shard_stride != 0) {
      absl::StrAppend(text, " master+dp_shard*", unit.master_shard_stride);
    }
    if (unit.snapshot >= 0) {
      absl::StrAppend(text, " snapshot=", BufferName(plan, unit.snapshot));
    }
    absl::StrAppend(text, "\n");
  }
  absl::StrAppend(text, "\nparameters\n");
  for (const Parameter& parameter : plan.params) {
    const bool known =
        parameter.unit >= 0 && static_cast<size_t>(parameter.unit) < plan.units.size();
    absl::StrAppendFormat(
        text, "  %-52s %s local %s in %s+%d %s%s%s\n", parameter.name, ShapeText(parameter.shape),
        ShapeText(parameter.local_shape),
        known ? plan.units[parameter.unit].name : absl::StrCat("?", parameter.unit),
        parameter.unit_offset, InitText(parameter),
        parameter.tp_dim >= 0 ? absl::StrCat(" tp:S", parameter.tp_dim) : "",
        parameter.transposed ? " transposed" : "");
  }
}

}  // namespace

std::string TablesText(const Plan& plan) {
  std::string text;
  AppendHeader(plan, &text);
  AppendMemoryTables(plan, &text);
  AppendTrainingTables(plan, &text);
  return text;
}

std::string ClassText(const Plan& plan, const RankClass& rank_class) {
  std::string text = absl::StrCat(
      "class stage ", rank_class.stage, "  layers [", absl::StrJoin(rank_class.layers, ","), "]",
      rank_class.has_embedding ? "  embedding" : "", rank_class.has_head ? "  head" : "", "\n");
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    if (rank_class.arena_bytes[kind] == 0) continue;
    absl::StrAppendFormat(&text, "  arena %-13s %d bytes\n",
                          MemoryKindName(static_cast<MemoryKind>(kind)),
                          rank_class.arena_bytes[kind]);
  }
  for (size_t pool = 0; pool < rank_class.pool_slots.size(); ++pool) {
    if (rank_class.pool_slots[pool] == 0) continue;
    absl::StrAppendFormat(&text, "  pool %-24s %d slots at %d\n",
                          PoolName(plan, static_cast<int>(pool)), rank_class.pool_slots[pool],
                          pool < rank_class.pool_bases.size() ? rank_class.pool_bases[pool] : -1);
  }
  for (int kind = 0; kind < kProgramCount; ++kind) {
    const Program& program = rank_class.programs[kind];
    absl::StrAppend(&text, "  program ", ProgramName(static_cast<ProgramKind>(kind)), "\n",
                    ProgramText(plan, program));
  }
  return text;
}

}  // namespace planc
