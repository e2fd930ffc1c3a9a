#ifndef PLANC_SCHEMAS_DTYPE_H_
#define PLANC_SCHEMAS_DTYPE_H_

#include <cstdint>
#include <string>

namespace planc {

// Element types of buffers. X(enumerator, text, bytes per element).
#define PLANC_DTYPES(X) \
  X(kF32, "f32", 4)     \
  X(kBF16, "bf16", 2)   \
  X(kF64, "f64", 8)     \
  X(kI32, "i32", 4)     \
  X(kU8, "u8", 1)

enum class DType : uint8_t {
#define PLANC_DTYPE_ENUM(name, text, bytes) name,
  PLANC_DTYPES(PLANC_DTYPE_ENUM)
#undef PLANC_DTYPE_ENUM
};

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
#define PLANC_DTYPE_SIZE(name, text, bytes) \
  case DType::name:                         \
    return bytes;
    PLANC_DTYPES(PLANC_DTYPE_SIZE)
#undef PLANC_DTYPE_SIZE
  }
  return 0;
}

// The spelling used in plan text: "f32", "bf16", ...
constexpr const char* DTypeName(DType dtype) {
  switch (dtype) {
#define PLANC_DTYPE_NAME(name, text, bytes) \
  case DType::name:                         \
    return text;
    PLANC_DTYPES(PLANC_DTYPE_NAME)
#undef PLANC_DTYPE_NAME
  }
  return "?";
}

}  // namespace planc

#endif  // PLANC_SCHEMAS_DTYPE_H_
