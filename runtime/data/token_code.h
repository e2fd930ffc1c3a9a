#ifndef PLANC_RUNTIME_DATA_TOKEN_CODE_H_
#define PLANC_RUNTIME_DATA_TOKEN_CODE_H_

#include <cstdint>
#include <cstring>

namespace planc {

// How one token is stored, little endian. X(enumerator, C++ type).
#define PLANC_TOKEN_CODES(X) \
  X(kU8, uint8_t)            \
  X(kI8, int8_t)             \
  X(kI16, int16_t)           \
  X(kU16, uint16_t)          \
  X(kI32, int32_t)           \
  X(kU32, uint32_t)          \
  X(kI64, int64_t)

enum class TokenCode : uint8_t {
#define PLANC_TOKEN_CODE_ENUM(name, type) name,
  PLANC_TOKEN_CODES(PLANC_TOKEN_CODE_ENUM)
#undef PLANC_TOKEN_CODE_ENUM
};

// Calls `visit(type())` with a value of the C++ type that `code` stores and returns what it does.
template <typename Visitor>
auto WithTokenType(TokenCode code, Visitor visit) {
  switch (code) {
#define PLANC_TOKEN_CODE_VISIT(name, type) \
  case TokenCode::name:                    \
    return visit(type());
    PLANC_TOKEN_CODES(PLANC_TOKEN_CODE_VISIT)
#undef PLANC_TOKEN_CODE_VISIT
  }
  return visit(uint8_t());
}

// Bytes of one token.
inline int64_t TokenBytes(TokenCode code) {
  return WithTokenType(code, [](auto zero) { return static_cast<int64_t>(sizeof(zero)); });
}

// The value at `data`, which need not be aligned.
template <typename T>
T LoadUnaligned(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_TOKEN_CODE_H_
