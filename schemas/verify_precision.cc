// Number formats are those that the job names.
#include "absl/strings/str_cat.h"
#include "schemas/verify_report.h"
#include "schemas/verify_shapes.h"

namespace planc::verifying {
namespace {

DType TypeOf(proto::Dtype dtype) { return dtype == proto::BF16 ? DType::kBF16 : DType::kF32; }

class PrecisionCheck {
 public:
  PrecisionCheck(const Plan& plan, Report& report)
      : plan_(plan),
        report_(report),
        compute_(TypeOf(plan.job.precision().compute())),
        gradient_(TypeOf(plan.job.precision().gradient_reduce())) {}

  void Run() {
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      for (size_t i = 0; i < plan_.blocks[b].instructions.size() && !report_.full(); ++i) {
        CheckInstruction(static_cast<int>(b), static_cast<int>(i));
      }
    }
    for (const Unit& unit : plan_.units) {
      State(unit.master, plan_.job.precision().master(), "precision.master");
      State(unit.first_moment, plan_.job.precision().optimizer_state(),
            "precision.optimizer_state");
      State(unit.second_moment, plan_.job.precision().optimizer_state(),
            "precision.optimizer_state");
    }
  }

 private:
  void CheckInstruction(int b, int i) {
    const Instruction& instruction = plan_.blocks[b].instructions[i];
    const auto shapes = ShapesOf(instruction.opcode, instruction.integers.data(), 1, 1);
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      const Buffer& buffer = plan_.buffers[instruction.operands[k].buffer];
      const bool activation = shapes[k].rule == ElementRule::kActivation;
      const bool gradient = shapes[k].rule == ElementRule::kGradient;
      if ((!activation || buffer.dtype == compute_) && (!gradient || buffer.dtype == gradient_)) {
        continue;
      }
      report_.Add("precision",
                  absl::StrCat(Where(plan_, b, i), ": ", buffer.name, " is ",
                               DTypeName(buffer.dtype), ", which is not precision.",
                               activation ? "compute" : "gradient_reduce", " of the job"));
    }
  }

  void State(int buffer, proto::Dtype asked, const char* key) {
    if (plan_.buffers[buffer].dtype == TypeOf(asked)) return;
    report_.Add("precision", absl::StrCat(plan_.buffers[buffer].name, " is ",
                                          DTypeName(plan_.buffers[buffer].dtype), ", which is not ",
                                          key, " of the job"));
  }

  const Plan& plan_;
  Report& report_;
  const DType compute_;
  const DType gradient_;
};

}  // namespace

void CheckPrecision(const Plan& plan, Report& report) {
  if (plan.job.has_precision()) PrecisionCheck(plan, report).Run();
}

}  // namespace planc::verifying
