#include "kernels/cuda/synthetic.h"

#include <gtest/gtest.h>

#include "kernels/cuda/cuda_case.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

TEST(CudaSynthetic, IsTheCpusBitForBit) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  const cudaStream_t stream = static_cast<cudaStream_t>(device.Context().stream);
  for (const SyntheticRecipe recipe : {SyntheticRecipe{1.5, 0}, SyntheticRecipe{0.25, 1}}) {
    for (const int64_t count : {int64_t{1}, int64_t{1000}, int64_t{3000001}}) {
      const HostTensor floats(DType::kF32, 1, 1, count);
      FillSynthetic("x.y", 7, recipe, 0,
                    absl::MakeSpan(floats.view().Row<float>(0), static_cast<size_t>(count)));
      const HostTensor halves(DType::kBF16, 1, 1, count);
      FillSynthetic("x.y", 7, recipe, 0,
                    absl::MakeSpan(halves.view().Row<bfloat16>(0), static_cast<size_t>(count)));
      for (const HostTensor* expected : {&floats, &halves}) {
        const CudaTensor tensor = CudaTensor::Poisoned(device, expected->view()).value();
        ASSERT_TRUE(FillSyntheticOnCuda(stream, "x.y", 7, recipe, tensor.view()).ok());
        EXPECT_TRUE(BitwiseEqual(expected->view(), tensor.Download(device).value().view()));
      }
    }
  }
}

}  // namespace
}  // namespace plumbline
