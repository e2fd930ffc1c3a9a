#ifndef PLANC_THIRD_PARTY_CUDA_SMOKE_KERNEL_H_
#define PLANC_THIRD_PARTY_CUDA_SMOKE_KERNEL_H_

namespace planc {

// Starts an empty kernel on the default stream: 0 (cudaSuccess), or the CUDA error code.
int LaunchSmokeKernel();

}  // namespace planc

#endif  // PLANC_THIRD_PARTY_CUDA_SMOKE_KERNEL_H_
