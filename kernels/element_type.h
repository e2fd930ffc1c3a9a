#ifndef PLANC_KERNELS_ELEMENT_TYPE_H_
#define PLANC_KERNELS_ELEMENT_TYPE_H_

#include "kernels/bf16.h"
#include "schemas/dtype.h"

namespace planc::host {

// Stops the program: the verifier of plans admits no other dtype to a kernel.
[[noreturn]] void UnsupportedElementType(DType dtype);

// Calls body(float{}) or body(Bf16{}), by dtype.
template <typename Body>
void WithElementType(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(Bf16{});
    default:
      UnsupportedElementType(dtype);
  }
}

}  // namespace planc::host

#endif  // PLANC_KERNELS_ELEMENT_TYPE_H_
