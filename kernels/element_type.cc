#include "kernels/element_type.h"

#include <glog/logging.h>

namespace planc::host {

void UnsupportedElementType(DType dtype) {
  LOG(FATAL) << "host kernels compute on f32 and bf16, not on " << DTypeName(dtype);
}

}  // namespace planc::host
