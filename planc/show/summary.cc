#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/job_schema.h"
#include "planc/device_memory.h"
#include "planc/node_memory.h"
#include "planc/show/comm_table.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_size.h"
#include "schemas/counted.h"

namespace planc {
namespace {

// The spelling of an enumeration value in a job file.
template <typename Enum>
std::string Spelling(const google::protobuf::EnumDescriptor* type, Enum value) {
  const google::protobuf::EnumValueDescriptor* descriptor = type->FindValueByNumber(value);
  return descriptor == nullptr ? "?" : EnumText(*descriptor);
}

std::string MeshText(const Plan& plan) {
  std::vector<std::string> axes;
  for (Axis axis : kAllAxes) {
    if (plan.mesh[axis] > 1) axes.push_back(absl::StrCat(AxisName(axis), " ", plan.mesh[axis]));
  }
  return axes.empty() ? "one rank" : absl::StrJoin(axes, " x ");
}

// Operations of one step, all ranks together.
double StepFlops(const Plan& plan) {
  const int64_t ranks = plan.mesh.WorldSize() / std::max<int64_t>(1, plan.mesh[Axis::kPp]);
  double flops = 0;
  for (const RankClass& rank_class : plan.classes) {
    const std::vector<int64_t> runs =
        BlockRuns(plan, rank_class.programs[static_cast<int>(ProgramKind::kStep)]);
    for (size_t b = 0; b < runs.size(); ++b) {
      for (const Instruction& instruction : plan.blocks[b].instructions) {
        flops += static_cast<double>(runs[b] * ranks) * instruction.cost.flops;
      }
    }
  }
  return flops;
}

int64_t LargestRankBytes(const Plan& plan) {
  int64_t most = 0;
  for (const RankClass& rank_class : plan.classes) {
    most = std::max(most, DeviceBytes(plan, rank_class));
  }
  return most;
}

std::string MemoryLine(const Plan& plan, int64_t largest) {
  std::string line = absl::StrCat(BytesText(largest), " on the fullest rank");
  int64_t pinned = 0;
  for (const RankClass& rank_class : plan.classes) {
    pinned = std::max(pinned, rank_class.arena_bytes[static_cast<int>(MemoryKind::kHostPinned)]);
  }
  if (pinned > 0 && !IsDeviceMemory(plan, MemoryKind::kHostPinned)) {
    absl::StrAppend(&line, ", and ", BytesText(pinned), " of host memory");
  }
  if (plan.job.cluster().device() == "host") {
    const NodeMemory node = FullestNodeMemory(plan);
    absl::StrAppend(&line, "; ", BytesText(node.total_bytes), " of a machine's memory for ",
                    Counted(node.ranks, "rank"));
  }
  return line;
}

std::string CheckpointLine(const Plan& plan, const CheckpointSize& size) {
  const std::string how = plan.job.checkpoint().async() ? "in the background" : "between steps";
  return absl::StrCat(BytesText(size.total_bytes), ", at most ", BytesText(size.largest_rank_bytes),
                      " a rank; ", how, ", ", SecondsText(size.write_seconds), " at ",
                      CountText(static_cast<double>(plan.job.cluster().storage_bandwidth())),
                      "B/s a machine");
}

int64_t ProgramInstructions(const Plan& plan) {
  int64_t count = 0;
  for (const Block& block : plan.blocks) count += static_cast<int64_t>(block.instructions.size());
  return count;
}

std::string ModelLine(const proto::Model& model) {
  return absl::StrCat(model.preset().empty() ? Spelling(proto::Family_descriptor(), model.family())
                                             : model.preset(),
                      ", ", Counted(model.layers(), "layer"), ", hidden ", model.hidden(),
                      ", heads ", model.heads(), ", kv heads ", model.kv_heads(), ", vocabulary ",
                      model.vocab());
}

std::string BatchLine(const Plan& plan) {
  const proto::Batch& batch = plan.job.batch();
  return absl::StrCat(
      Counted(batch.global(), "sequence"), " of ", Counted(batch.sequence(), "token"), " = ",
      Counted(GroupedText(batch.global() * batch.sequence()), "token"), " a step; micro ",
      batch.micro(), ", ", Counted(plan.microbatches, "microbatch"), " a rank");
}

std::string PrecisionLine(const proto::Job& job) {
  const auto text = [](proto::Dtype dtype) { return Spelling(proto::Dtype_descriptor(), dtype); };
  const proto::Precision& precision = job.precision();
  return absl::StrCat("compute ", text(precision.compute()), ", master ", text(precision.master()),
                      ", gradients ", text(precision.gradient_reduce()), ", moments ",
                      text(precision.optimizer_state()));
}

std::string ProofLine(const Certificate& certificate) {
  return absl::StrCat(Counted(GroupedText(certificate.instructions), "instruction"), ", ",
                      GroupedText(certificate.collectives), " collectives, ",
                      GroupedText(certificate.transfers), " transfers and ",
                      GroupedText(certificate.order_checks),
                      " accesses of operands, none in a race");
}

void Line(const char* name, const std::string& value, std::string* text) {
  absl::StrAppendFormat(text, "  %-12s %s\n", name, value);
}

}  // namespace

ShowSection ShowSummary(const ShowInput& input) {
  const Plan& plan = input.plan;
  const proto::Job& job = plan.job;
  const double flops = StepFlops(plan);
  const int64_t largest = LargestRankBytes(plan);
  const CheckpointSize checkpoint = CheckpointSizeOf(plan);
  ShowSection section{"summary", "", {}};
  std::string& text = section.text;
  Line("job", job.job(), &text);
  Line("plan", input.hash, &text);
  Line("model", ModelLine(job.model()), &text);
  Line("parameters", GroupedText(plan.parameters), &text);
  Line("cluster",
       absl::StrCat(Counted(job.cluster().nodes(), "node"), " of ", plan.ranks_per_node, " ",
                    job.cluster().device(), " = ", Counted(plan.mesh.WorldSize(), "rank")),
       &text);
  Line("mesh", MeshText(plan), &text);
  Line("parallelism",
       absl::StrCat("zero ", job.parallelism().zero(), ", sequence parallel ",
                    job.parallelism().sequence_parallel() ? "yes" : "no", ", schedule ",
                    Spelling(proto::Schedule_descriptor(), job.parallelism().pipeline().schedule()),
                    " v", job.parallelism().pipeline().virtual_stages(), ", recompute ",
                    Spelling(proto::Recompute_descriptor(), job.recompute())),
       &text);
  Line("precision", PrecisionLine(job), &text);
  Line("batch", BatchLine(plan), &text);
  Line("work", absl::StrCat(CountText(flops), "FLOP a step"), &text);
  Line("memory", MemoryLine(plan, largest), &text);
  Line("checkpoint", CheckpointLine(plan, checkpoint), &text);
  if (input.schedule.ok()) {
    Line("time",
         absl::StrCat("at least ", SecondsText(input.schedule->seconds),
                      " a step at catalogue peak rates (not calibrated)"),
         &text);
  }
  Line("program",
       absl::StrCat(Counted(ProgramInstructions(plan), "instruction"), " in ",
                    Counted(plan.blocks.size(), "block"), ", ",
                    Counted(plan.classes.size(), "rank class")),
       &text);
  Line("proven",
       "no deadlock, no unordered or out-of-bounds access, no missing reduction; the model, number "
       "formats, zero and recompute of the job; costs of instructions",
       &text);
  Line("not proven", "predicted times, kernels and libraries, data", &text);
  Line("proof", ProofLine(input.certificate), &text);
  text = Wrap(text, 13);
  section.data = {{"job", job.job()},
                  {"parameters", plan.parameters},
                  {"ranks", plan.mesh.WorldSize()},
                  {"microbatches", plan.microbatches},
                  {"tokens_per_step", job.batch().global() * job.batch().sequence()},
                  {"flops_per_step", flops},
                  {"largest_rank_bytes", largest},
                  {"checkpoint",
                   {{"total_bytes", checkpoint.total_bytes},
                    {"largest_rank_bytes", checkpoint.largest_rank_bytes},
                    {"largest_node_bytes", checkpoint.largest_node_bytes},
                    {"predicted_write_seconds", checkpoint.write_seconds}}},
                  {"instructions", ProgramInstructions(plan)},
                  {"rank_classes", plan.classes.size()},
                  {"proven",
                   {{"instructions", input.certificate.instructions},
                    {"collectives", input.certificate.collectives},
                    {"transfers", input.certificate.transfers},
                    {"order_checks", input.certificate.order_checks}}}};
  if (input.schedule.ok()) section.data["step_seconds_at_peak"] = input.schedule->seconds;
  return section;
}

}  // namespace planc
