#ifndef PLANC_SCHEMAS_VERIFY_SCRATCH_H_
#define PLANC_SCHEMAS_VERIFY_SCRATCH_H_

#include <cstdint>

#include "schemas/opcode.h"

namespace planc::verifying {

// Bytes of scratch beyond which the instruction touches nothing when it gets exactly so many, and
// without which it cannot run; 0 for opcodes without scratch. Derived from the blocks that the
// kernels and groups work on, not from what the compiler reserves. `integers` are the attributes of
// opcode.def; `members` and `element` the size of the group and the bytes of operand 0 for
// collectives.
// REQUIRES: attributes are not negative.
int64_t LeastScratchBytes(Opcode opcode, const int64_t* integers, int64_t members, int64_t element);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_SCRATCH_H_
