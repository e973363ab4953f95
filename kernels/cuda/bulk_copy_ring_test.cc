#include "kernels/cuda/bulk_copy_ring.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/cuda_case.h"
#include "kernels/cuda/sm90.h"

namespace plumbline::cuda {
namespace {

// Every tile is seen whole and once: sums of whole numbers, so that each is exact.
TEST(BulkCopyRing, BringsEveryTileOnce) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  if (!RunsSm90Code()) GTEST_SKIP() << "no bulk copies on this device";
  constexpr int kTiles = 1000;
  std::vector<float> host(kTiles * kRingTileFloats), wanted(kRingTileFloats);
  for (int i = 0; i < kTiles * kRingTileFloats; ++i) {
    host[i] = static_cast<float>(i * 37 % 1021);
    wanted[i % kRingTileFloats] += host[i];
  }
  float *from = nullptr, *to = nullptr;
  ASSERT_EQ(cudaMalloc(&from, host.size() * sizeof(float)), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&to, wanted.size() * sizeof(float)), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(from, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_TRUE(AddTilesThroughRing(nullptr, from, kTiles, to).ok());
  std::vector<float> sums(kRingTileFloats);
  ASSERT_EQ(cudaMemcpy(sums.data(), to, sums.size() * sizeof(float), cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(sums, wanted);
  cudaFree(from);
  cudaFree(to);
}

}  // namespace
}  // namespace plumbline::cuda
