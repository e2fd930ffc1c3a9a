// Bytes that each operand touches: inside its buffer on every rank, and exactly as many as the
// instruction's attributes say.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_report.h"
#include "schemas/verify_shapes.h"

namespace planc::verifying {
namespace {

// Attributes beyond this are refused, so that products of sizes stay meaningful.
constexpr int64_t kMaxAttribute = int64_t{1} << 44;

bool AttributesAreValid(const Plan& plan, const Instruction& instruction) {
  const OpcodeTraits& traits = TraitsOf(instruction.opcode);
  for (size_t i = 0; i < instruction.integers.size(); ++i) {
    const std::string& name = traits.integers[i];
    const int64_t value = instruction.integers[i];
    const bool flag = name == "transpose_a" || name == "transpose_b" || name == "maximum";
    if (name == "delta") continue;  // judged with the stream
    if (flag && value != 0 && value != 1) return false;
    if (name == "unit" && (value < 0 || value >= static_cast<int64_t>(plan.units.size()))) {
      return false;
    }
    if (name == "once_axes" && (value < 0 || value >= (1 << kAxisCount))) return false;
    const bool may_be_zero = flag || name == "unit" || name == "once_axes" ||
                             name == "row_stride" || name == "decay_count";
    if (value < (may_be_zero ? 0 : 1) || value > kMaxAttribute) return false;
  }
  return true;
}

class BoundsCheck {
 public:
  BoundsCheck(const Plan& plan, Report& report) : plan_(plan), report_(report) {}

  void CheckInstruction(int b, int i) {
    instruction_ = &plan_.blocks[b].instructions[i];
    block_ = b;
    index_ = i;
    if (!AttributesAreValid(plan_, *instruction_)) return Bad("an attribute is out of range");
    const int group = instruction_->group;
    const int64_t members = group < 0 ? 1 : GroupSize(plan_.mesh, plan_.groups[group]);
    const auto& operands = instruction_->operands;
    const int64_t element = SizeOf(plan_.buffers[operands[0].buffer].dtype);
    auto shapes = ShapesOf(instruction_->opcode, instruction_->integers.data(), members, element);
    if (instruction_->opcode == Opcode::kInitParameters) {
      shapes[0].rows = plan_.units[instruction_->integers[0]].elements / plan_.mesh[Axis::kDpShard];
    }
    for (size_t k = 0; k < operands.size(); ++k) Extent(operands[k]);
    for (size_t k = 0; k < operands.size(); ++k) Bytes(operands[k], shapes[k]);
    Types(shapes);
  }

 private:
  void Bad(const std::string& message) {
    report_.Add("bounds", absl::StrCat(Where(plan_, block_, index_), ": ", message));
  }

  // The operand stays inside its buffer for the first and the last dp_shard coordinate, hence for
  // all between them.
  void Extent(const Operand& operand) {
    const Buffer& buffer = plan_.buffers[operand.buffer];
    if (operand.offset < 0 || operand.bytes <= 0 || operand.shard_stride < 0 ||
        operand.offset > kMaxNumber || operand.bytes > kMaxNumber) {
      return Bad(absl::StrCat("operand ", buffer.name, " has no valid range"));
    }
    const int64_t last = Times(operand.shard_stride, plan_.mesh[Axis::kDpShard] - 1);
    const int64_t end = Plus(Plus(operand.offset, last), operand.bytes);
    // A view of one shard names the bytes of one rank, although it moves inside its slot.
    const int64_t limit = operand.shard_stride == 0 ? buffer.bytes : Plus(buffer.bytes, last);
    if (end > limit || Plus(buffer.offset, end) > plan_.pools[buffer.pool].stride) {
      Bad(absl::StrCat("operand ", buffer.name, " ends at byte ", end, " of ", limit));
    }
    if (operand.shard_stride != 0 && operand.shard_stride < operand.bytes) {
      Bad(absl::StrCat("shards of operand ", buffer.name, " overlap"));
    }
    const int64_t size = SizeOf(buffer.dtype);
    if (operand.offset % size != 0 || operand.shard_stride % size != 0 ||
        operand.bytes % size != 0) {
      Bad(absl::StrCat("operand ", buffer.name, " is not aligned to its elements"));
    }
  }

  void Bytes(const Operand& operand, const OperandShape& shape) {
    const Buffer& buffer = plan_.buffers[operand.buffer];
    if (shape.rule == ElementRule::kScratch) {
      if (operand.bytes < shape.rows) {
        Bad(absl::StrCat("scratch ", buffer.name, " has ", Counted(operand.bytes, "byte"),
                         ", the operation ", "takes ", shape.rows));
      }
      return;
    }
    if (shape.rows < 0) return;  // any size
    const int64_t row = Times(shape.columns, SizeOf(buffer.dtype));
    const int64_t expected = Times(shape.rows, row);
    if (shape.more_rows && operand.bytes >= expected && operand.bytes % row == 0) return;
    if (operand.bytes != expected) {
      Bad(absl::StrCat("operand ", buffer.name, " covers ", Counted(operand.bytes, "byte"),
                       ", the operation takes ", shape.rows, " x ", shape.columns, " ",
                       DTypeName(buffer.dtype), " = ", expected));
    }
  }

  void Types(const std::array<OperandShape, kMaxOperands>& shapes) {
    std::optional<DType> activation;
    std::optional<DType> gradient;
    for (size_t k = 0; k < instruction_->operands.size(); ++k) {
      const Buffer& buffer = plan_.buffers[instruction_->operands[k].buffer];
      const DType dtype = buffer.dtype;
      const bool real = dtype == DType::kF32 || dtype == DType::kBF16;
      bool valid = true;
      switch (shapes[k].rule) {
        case ElementRule::kActivation:
          if (!activation) activation = dtype;
          valid = real && dtype == *activation;
          break;
        case ElementRule::kGradient:
          if (!gradient) gradient = dtype;
          valid = real && dtype == *gradient;
          break;
        case ElementRule::kFloat:
          valid = dtype == DType::kF32;
          break;
        case ElementRule::kScalarSum:
          valid = dtype == DType::kF64;
          break;
        case ElementRule::kIndex:
          valid = dtype == DType::kI32;
          break;
        case ElementRule::kAny:
        case ElementRule::kScratch:
          break;
      }
      if (!valid) Bad(absl::StrCat("operand ", buffer.name, " cannot be ", DTypeName(dtype)));
    }
    SameTypes();
  }

  // Collectives move elements unchanged; products keep their type or widen it.
  void SameTypes() {
    const auto dtype = [&](int k) { return plan_.buffers[instruction_->operands[k].buffer].dtype; };
    switch (instruction_->opcode) {
      case Opcode::kReduceScatter:
      case Opcode::kAllGather:
        if (dtype(0) != dtype(1)) Bad("source and destination differ in type");
        break;
      case Opcode::kCast:
      case Opcode::kAccumulate:
        for (int k : {0, 1}) {
          if (dtype(k) == DType::kF32 || dtype(k) == DType::kBF16) continue;
          Bad(absl::StrCat("an operand cannot be ", DTypeName(dtype(k))));
        }
        break;
      case Opcode::kMatmul:
        if (dtype(2) != DType::kF32 && dtype(2) != dtype(0)) Bad("the product is rounded too far");
        break;
      case Opcode::kMatmulAdd:
        if (dtype(0) == DType::kF32 && dtype(2) != DType::kF32) {
          Bad("a product of f32 matrices needs an f32 sum");
        }
        break;
      default:
        break;
    }
  }

  const Plan& plan_;
  Report& report_;
  const Instruction* instruction_ = nullptr;
  int block_ = 0;
  int index_ = 0;
};

}  // namespace

void CheckBounds(const Plan& plan, Report& report) {
  BoundsCheck check(plan, report);
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    for (size_t i = 0; i < plan.blocks[b].instructions.size() && !report.full(); ++i) {
      check.CheckInstruction(static_cast<int>(b), static_cast<int>(i));
    }
  }
}

}  // namespace planc::verifying
