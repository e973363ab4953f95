// What the norms' kernels read beside x: rms_norm.cuh says what they compute.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_NORM_ROWS_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_NORM_ROWS_CUH_

#include <cstdint>

#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/cuda/row_sum.cuh"

namespace plumbline::candidate_cuda {

using cuda::bf16;
using cuda::kRowVector;
using cuda::RoundThroughBf16;
using cuda::RowTeam;
using cuda::View;

// round(1 + scale) of a table row; kModulatedRmsNorm alone.
struct Modulation {
  View<const bf16> scale;
  View<const bf16> shift;
  View<const int64_t> index;

  static Modulation None() {
    return {View<const bf16>(Tensor()), View<const bf16>(Tensor()), View<const int64_t>(Tensor())};
  }
  __device__ static float Factor(float scale) { return RoundThroughBf16(1.0f + scale); }
};

struct NormShape {
  int64_t rows;       // of one batch item
  int64_t flat_rows;  // of all
  int64_t groups;     // runs of channels in a row
  int width;          // G
};

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_NORM_ROWS_CUH_
