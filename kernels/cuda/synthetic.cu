#include <algorithm>

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/cuda/synthetic.h"

namespace plumbline {
namespace {

using cuda::bf16;

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 132 * 64;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    FillKernel(uint64_t key, float scale, float offset, int64_t count, T* to) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    uint64_t z = key + static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    const int32_t u = static_cast<int32_t>(z >> 40) - (1 << 23);
    const float scaled = static_cast<float>(u) * 0x1p-23f * scale;
    // An offset of zero adds nothing but would turn -0 into 0.
    to[i] = cuda::RoundTo<T>(offset == 0 ? scaled : scaled + offset);
  }
}

}  // namespace

absl::Status FillSyntheticOnCuda(cudaStream_t stream, absl::string_view name, uint64_t seed,
                                 SyntheticRecipe recipe, const Tensor& to) {
  if (!to.IsDense() || (to.dtype != DType::kBF16 && to.dtype != DType::kF32)) {
    return absl::InvalidArgumentError("synthetic values fill dense tensors of BF16 or F32");
  }
  const int64_t count = to.NumElements();
  if (count == 0) return absl::OkStatus();
  const uint64_t key = Fnv1a64(name) ^ (seed * 0xD1342543DE82EF95);
  const float scale = static_cast<float>(recipe.scale);
  const float offset = static_cast<float>(recipe.offset);
  const unsigned blocks =
      static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
  if (to.dtype == DType::kBF16) {
    FillKernel<<<blocks, kThreads, 0, stream>>>(key, scale, offset, count,
                                                static_cast<bf16*>(to.data));
  } else {
    FillKernel<<<blocks, kThreads, 0, stream>>>(key, scale, offset, count,
                                                static_cast<float*>(to.data));
  }
  return LaunchStatus("synthetic tensor");
}

}  // namespace plumbline
