#ifndef PLANC_SCHEMAS_VERIFY_LAYOUTS_H_
#define PLANC_SCHEMAS_VERIFY_LAYOUTS_H_

#include <cstdint>

#include "schemas/verify_flat.h"
#include "schemas/verify_memory.h"
#include "schemas/verify_shapes.h"

namespace planc::verifying {

// The layout of every operand of one local operation on one mesh axis (LayoutCode).
struct AxisCase {
  const FlatInstruction& instruction;
  Axis axis;
  uint8_t in[kMaxOperands];   // read and updated operands, before
  uint8_t out[kMaxOperands];  // written and updated operands, after
};

// Sets `out` from `in`; false when the operation would not compute what it stands for on this axis.
// Local operations never see other ranks: what they leave is a partial sum (maximum) wherever they
// sum (take the maximum) over a dimension that is split, and only operations linear in an operand
// may take a partial sum.
bool ApplyAxisRule(AxisCase& c);

// The layout of x after the collective on an axis of its group: P -> R, M -> R, P -> S0, S0 -> R.
// False when x is not what the collective converts: a doubled or misplaced reduction.
bool ApplyCollectiveRule(Opcode opcode, bool maximum, uint8_t in, uint8_t* out);

// "R", "P", "M", "U", "S0", "S1", "any".
const char* CodeText(uint8_t code);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_LAYOUTS_H_
