#ifndef PLANC_RUNTIME_STEP_OP_VIEW_H_
#define PLANC_RUNTIME_STEP_OP_VIEW_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/context.h"
#include "runtime/step/prepared_instruction.h"
#include "runtime/step/step_context.h"
#include "schemas/dtype.h"
#include "schemas/mesh.h"
#include "schemas/opcode.h"

namespace planc {

// A string as a template argument.
template <size_t kSize>
struct FixedString {
  char text[kSize];
  constexpr FixedString(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }
  constexpr std::string_view View() const { return {text, kSize - 1}; }
};

// A row of opcode.def as text, for lookups while compiling.
struct OpcodeRow {
  std::string_view operands;
  std::string_view integers;
  std::string_view reals;
};
inline constexpr std::array<OpcodeRow, kOpcodeCount> kOpcodeRows = {{
#define X(name, text, kind, operands, integers, reals) {operands, integers, reals},
#include "schemas/opcode.def"
#undef X
}};

// Position of `name` in a list of blank-separated words, each with or without an `access:` before
// it; -1 when it is not there.
consteval int PositionOf(std::string_view words, std::string_view name) {
  int position = 0;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    std::string_view word = words.substr(0, end);
    const size_t colon = word.find(':');
    if (colon != std::string_view::npos) word.remove_prefix(colon + 1);
    if (word == name) return position;
    words.remove_prefix(std::min(end + 1, words.size()));
    ++position;
  }
  return -1;
}

// An instruction read through the names of its row in opcode.def: a name that the row does not have
// is a compile error, so handlers and table cannot drift apart.
template <Opcode kOpcode>
class OpView {
 public:
  OpView(const PreparedInstruction& instruction, const StepContext& context)
      : instruction_(instruction), context_(context) {}

  // Address of an operand; T is its element type, or void for kernels that take a DType.
  template <FixedString kName, typename T = void>
  T* Operand() const {
    return static_cast<T*>(context_.operands[OperandIndex<kName>()]);
  }
  template <FixedString kName>
  DType TypeOf() const {
    return instruction_.operands[OperandIndex<kName>()].dtype;
  }
  template <FixedString kName>
  int64_t BytesOf() const {
    return instruction_.operands[OperandIndex<kName>()].bytes;
  }
  template <FixedString kName>
  int64_t Integer() const {
    constexpr int kIndex = PositionOf(kRow.integers, kName.View());
    static_assert(kIndex >= 0 && kIndex < kMaxIntegers, "no such integer in opcode.def");
    return instruction_.integers[kIndex];
  }
  template <FixedString kName>
  double Real() const {
    constexpr int kIndex = PositionOf(kRow.reals, kName.View());
    static_assert(kIndex >= 0 && kIndex < kMaxReals, "no such real in opcode.def");
    return instruction_.reals[kIndex];
  }

  int64_t Coordinate(Axis axis) const { return context_.coordinates[static_cast<int>(axis)]; }

  // The context of a kernel with no scratch, and of one whose scratch is the operand `workspace`.
  host::KernelContext Kernel() const {
    return {nullptr, 0, instruction_.threads, instruction_.instruction_set};
  }
  host::KernelContext KernelWithWorkspace() const {
    return {Operand<"workspace">(), static_cast<size_t>(BytesOf<"workspace">()),
            instruction_.threads, instruction_.instruction_set};
  }

 private:
  static constexpr OpcodeRow kRow = kOpcodeRows[static_cast<int>(kOpcode)];

  template <FixedString kName>
  static consteval int OperandIndex() {
    constexpr int kIndex = PositionOf(kRow.operands, kName.View());
    static_assert(kIndex >= 0 && kIndex < kMaxOperands, "no such operand in opcode.def");
    return kIndex;
  }

  const PreparedInstruction& instruction_;
  const StepContext& context_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_OP_VIEW_H_
