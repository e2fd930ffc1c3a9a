#ifndef PLANC_SCHEMAS_VERIFY_SHAPES_H_
#define PLANC_SCHEMAS_VERIFY_SHAPES_H_

#include <array>
#include <cstdint>

#include "schemas/plan.h"

namespace planc::verifying {

// Which element types an operand may have.
enum class ElementRule : uint8_t {
  kActivation,  // f32 or bf16, the same for all such operands of the instruction
  kGradient,    // f32 or bf16, the same for all such operands of the instruction
  kFloat,       // f32
  kScalarSum,   // f64
  kIndex,       // i32
  kAny,         // whatever the buffer holds
  kScratch,     // bytes without a meaning between instructions
};

// What an instruction takes one operand to be: a row-major [rows, columns] matrix.
struct OperandShape {
  int64_t rows = 0;
  int64_t columns = 1;
  ElementRule rule = ElementRule::kActivation;
  bool more_rows = false;  // the operand may have further rows, which the instruction leaves alone
};

inline constexpr int kMaxOperands = 9;

// Shapes of all operands, from the attributes alone. Scratch operands give the least bytes in
// `rows`
// (`members` and `element` are the size of the group and the bytes of operand 0 for collectives).
// REQUIRES: counts of operands and attributes as in opcode.def; attributes are not negative.
std::array<OperandShape, kMaxOperands> ShapesOf(Opcode opcode, const int64_t* integers,
                                                int64_t members, int64_t element);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_SHAPES_H_
