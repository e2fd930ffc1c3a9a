// The CUDA toolkit and NCCL: headers compile, libraries link, host-side entry points answer.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "third_party/cuda/smoke_kernel.h"

namespace planc {
namespace {

TEST(CudaSmokeTest, VersionsMatchTheHeaders) {
  int runtime_version = 0;
  ASSERT_EQ(cudaRuntimeGetVersion(&runtime_version), cudaSuccess);
  EXPECT_EQ(runtime_version / 1000, CUDART_VERSION / 1000);
  EXPECT_EQ(cublasLtGetVersion() / 10000, size_t{CUBLAS_VER_MAJOR});
  int nccl_version = 0;
  ASSERT_EQ(ncclGetVersion(&nccl_version), ncclSuccess);
  EXPECT_EQ(nccl_version / 10000, NCCL_MAJOR);
}

TEST(CudaSmokeTest, KernelLaunchesWhereThereIsADevice) {
  int devices = 0;
  const bool has_device = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  EXPECT_EQ(LaunchSmokeKernel() == 0, has_device);
}

}  // namespace
}  // namespace planc
