#include "runtime/step/handlers.h"

#include <array>

namespace planc {

Handler HandlerOf(Opcode opcode) {
  static constexpr std::array<Handler, kOpcodeCount> kHandlers = {{
#define X(name, text, kind, operands, integers, reals) &Handle##name,
#include "schemas/opcode.def"
#undef X
  }};
  return kHandlers[static_cast<int>(opcode)];
}

}  // namespace planc
