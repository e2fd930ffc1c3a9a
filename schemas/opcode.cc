#include "schemas/opcode.h"

#include <array>
#include <sstream>

namespace planc {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

OpcodeTraits Parse(const char* text, OpcodeKind kind, const char* operands, const char* integers,
                   const char* reals) {
  OpcodeTraits traits{text, kind, {}, Words(integers), Words(reals)};
  for (const std::string& word : Words(operands)) {
    const Access access = word[0] == 'r'   ? Access::kRead
                          : word[0] == 'w' ? Access::kWrite
                                           : Access::kUpdate;
    traits.operands.push_back({word.substr(2), access});
  }
  return traits;
}

using Table = std::array<OpcodeTraits, kOpcodeCount>;

const Table& AllTraits() {
  static const Table* table = new Table{
#define X(name, text, kind, operands, integers, reals) \
  Parse(text, OpcodeKind::k##kind, operands, integers, reals),
#include "schemas/opcode.def"
#undef X
  };
  return *table;
}

int IndexOf(const std::vector<std::string>& names, const std::string& name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

const OpcodeTraits& TraitsOf(Opcode opcode) { return AllTraits()[static_cast<int>(opcode)]; }

std::optional<Opcode> OpcodeFromText(const std::string& text) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    if (AllTraits()[i].text == text) return static_cast<Opcode>(i);
  }
  return std::nullopt;
}

int IntegerIndex(Opcode opcode, const std::string& name) {
  return IndexOf(TraitsOf(opcode).integers, name);
}

int RealIndex(Opcode opcode, const std::string& name) {
  return IndexOf(TraitsOf(opcode).reals, name);
}

int OperandIndex(Opcode opcode, const std::string& name) {
  const auto& operands = TraitsOf(opcode).operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace planc
