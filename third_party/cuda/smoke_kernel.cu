#include "third_party/cuda/smoke_kernel.h"

namespace planc {
namespace {

__global__ void SmokeKernel() {}

}  // namespace

int LaunchSmokeKernel() {
  SmokeKernel<<<1, 1>>>();
  return cudaGetLastError();
}

}  // namespace planc
