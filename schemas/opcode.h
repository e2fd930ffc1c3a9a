#ifndef PLANC_SCHEMAS_OPCODE_H_
#define PLANC_SCHEMAS_OPCODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planc {

enum class Opcode : uint8_t {
#define X(name, text, kind, operands, integers, reals) k##name,
#include "schemas/opcode.def"
#undef X
};

inline constexpr int kOpcodeCount = 0
#define X(name, text, kind, operands, integers, reals) +1
#include "schemas/opcode.def"
#undef X
    ;

enum class OpcodeKind : uint8_t { kCompute, kCollective, kTransfer, kHost };

enum class Access : uint8_t { kRead, kWrite, kUpdate };

struct OperandTraits {
  std::string name;
  Access access;
  // Memory that only this operation uses: it carries no value from or to others.
  bool IsScratch() const { return name == "workspace" || name == "scratch"; }
};

// One row of opcode.def, parsed.
struct OpcodeTraits {
  std::string text;
  OpcodeKind kind;
  std::vector<OperandTraits> operands;
  std::vector<std::string> integers;  // attribute names, in order
  std::vector<std::string> reals;
};

const OpcodeTraits& TraitsOf(Opcode opcode);
// The opcode spelled `text`, if any.
std::optional<Opcode> OpcodeFromText(const std::string& text);
// Position of attribute `name` among the integer (real) attributes, -1 if the opcode has none of
// that name.
int IntegerIndex(Opcode opcode, const std::string& name);
int RealIndex(Opcode opcode, const std::string& name);
int OperandIndex(Opcode opcode, const std::string& name);

}  // namespace planc

#endif  // PLANC_SCHEMAS_OPCODE_H_
