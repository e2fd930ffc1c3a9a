#include "runtime/step/operand_types.h"

#include <cstddef>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

const char* TypesOf(Opcode opcode) {
  switch (opcode) {
#define PLANC_OPERAND_TYPES(name, types) \
  case Opcode::k##name:                  \
    return types;
#include "runtime/step/operand_types.def"
#undef PLANC_OPERAND_TYPES
  }
  return "";
}

bool IsReal(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

// Whether `dtype` is what the letter stands for; `first` is the type of the instruction's first
// operand with this letter.
bool Takes(char letter, DType dtype, std::optional<DType>* first) {
  switch (letter) {
    case 'a':
    case 'g':
      if (!first->has_value()) *first = dtype;
      return IsReal(dtype) && dtype == **first;
    case 'r':
      return IsReal(dtype);
    case 'f':
      return dtype == DType::kF32;
    case 'd':
      return dtype == DType::kF64;
    case 'i':
      return dtype == DType::kI32;
    default:
      return letter == 'w' || letter == '*';
  }
}

// Whether the operands go together: collectives move elements unchanged, and products are not
// rounded further than their operands.
bool GoTogether(const Plan& plan, const Instruction& instruction) {
  const auto dtype = [&](int k) { return plan.buffers[instruction.operands[k].buffer].dtype; };
  switch (instruction.opcode) {
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
      return dtype(0) == dtype(1);
    case Opcode::kMatmul:
      return dtype(2) == DType::kF32 || dtype(2) == dtype(0);
    case Opcode::kMatmulAdd:
      return dtype(0) != DType::kF32 || dtype(2) == DType::kF32;
    default:
      return true;
  }
}

}  // namespace

absl::Status CheckOperandTypes(const Plan& plan, const Block& block, int instruction) {
  const Instruction& checked = block.instructions[instruction];
  const OpcodeTraits& traits = TraitsOf(checked.opcode);
  const char* const types = TypesOf(checked.opcode);
  const auto refuse = [&](size_t k) {
    const Buffer& buffer = plan.buffers[checked.operands[k].buffer];
    return absl::InvalidArgumentError(
        absl::StrCat("block ", block.name, ", instruction ", instruction, " (", traits.text,
                     "): operand ", buffer.name, " cannot be ", DTypeName(buffer.dtype)));
  };
  std::optional<DType> activation;
  std::optional<DType> gradient;
  for (size_t k = 0; k < checked.operands.size() && k < std::strlen(types); ++k) {
    const DType dtype = plan.buffers[checked.operands[k].buffer].dtype;
    if (!Takes(types[k], dtype, types[k] == 'a' ? &activation : &gradient)) return refuse(k);
  }
  if (!GoTogether(plan, checked)) return refuse(checked.opcode == Opcode::kMatmul ? 2 : 0);
  return absl::OkStatus();
}

}  // namespace planc
