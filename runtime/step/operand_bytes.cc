#include "runtime/step/operand_bytes.h"

#include <array>
#include <cstddef>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/status.h"
#include "schemas/verify_shapes.h"

namespace planc {
namespace {

using verifying::ElementRule;
using verifying::OperandShape;
using Shapes = std::array<OperandShape, verifying::kMaxOperands>;

// Sizes beyond this, products among them, are those of no operand.
constexpr int64_t kMaxAttribute = int64_t{1} << 44;

absl::StatusOr<Shapes> HandledShapes(const Plan& plan, const Instruction& instruction) {
  const OpcodeTraits& traits = TraitsOf(instruction.opcode);
  for (size_t i = 0; i < traits.integers.size(); ++i) {
    const int64_t value = instruction.integers[i];
    if (traits.integers[i] == "delta") continue;  // a direction, not a size
    if (value < 0 || value > kMaxAttribute) {
      return absl::InvalidArgumentError(absl::StrCat(traits.integers[i], " is ", value));
    }
  }
  const int64_t members =
      instruction.group < 0 ? 1 : GroupSize(plan.mesh, plan.groups[instruction.group]);
  const int64_t element =
      instruction.operands.empty() ? 1 : SizeOf(plan.buffers[instruction.operands[0].buffer].dtype);
  Shapes shapes =
      verifying::ShapesOf(instruction.opcode, instruction.integers.data(), members, element);
  if (instruction.opcode == Opcode::kInitParameters) {
    const int64_t unit = instruction.integers[0];
    if (unit >= static_cast<int64_t>(plan.units.size())) {
      return absl::InvalidArgumentError(absl::StrCat("unit is ", unit));
    }
    shapes[0].rows = plan.units[unit].elements / plan.mesh[Axis::kDpShard];
  }
  return shapes;
}

// Bytes that the handler accesses; 0 for opcodes that take whatever they are given.
absl::int128 HandledBytes(const OperandShape& shape, DType dtype) {
  if (shape.rule == ElementRule::kScratch) return shape.rows;
  if (shape.rows < 0) return 0;
  return absl::int128(shape.rows) * shape.columns * SizeOf(dtype);
}

absl::Status CheckOperand(const Plan& plan, const Operand& operand, const OperandShape& shape,
                          int64_t dp_shard) {
  const Buffer& buffer = plan.buffers[operand.buffer];
  const int64_t stride = plan.pools[buffer.pool].stride;
  const absl::int128 begin =
      absl::int128(buffer.offset) + operand.offset + absl::int128(dp_shard) * operand.shard_stride;
  if (operand.bytes < 0 || begin < 0 || begin + operand.bytes > stride) {
    return absl::InvalidArgumentError(absl::StrCat(
        "operand ", buffer.name, " does not lie in its slot of ", Counted(stride, "byte")));
  }
  if (HandledBytes(shape, buffer.dtype) > operand.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("operand ", buffer.name, " has ",
                                                   Counted(operand.bytes, "byte"),
                                                   ", fewer than the operation takes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOperandBytes(const Plan& plan, const Block& block, int instruction,
                               int64_t dp_shard) {
  const Instruction& checked = block.instructions[instruction];
  const std::string where = absl::StrCat("block ", block.name, ", instruction ", instruction, " (",
                                         TraitsOf(checked.opcode).text, ")");
  const absl::StatusOr<Shapes> shapes = HandledShapes(plan, checked);
  PLANC_RETURN_IF_ERROR(WithContext(shapes.status(), where));
  for (size_t k = 0; k < checked.operands.size(); ++k) {
    PLANC_RETURN_IF_ERROR(
        WithContext(CheckOperand(plan, checked.operands[k], (*shapes)[k], dp_shard), where));
  }
  return absl::OkStatus();
}

}  // namespace planc
