// A vector parameter as kernels see it where its type is free.
#ifndef PLUMBLINE_KERNELS_CUDA_PARAMETER_VIEW_CUH_
#define PLUMBLINE_KERNELS_CUDA_PARAMETER_VIEW_CUH_

#include <cstdint>

#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::cuda {

// The values of a (1, 1, width) tensor, bfloat16 or float32, widened.
class ParameterView {
 public:
  explicit ParameterView(const Tensor& tensor)
      : data_(tensor.data), is_bf16_(tensor.dtype == DType::kBF16) {}

  __device__ float operator[](int64_t i) const {
    return is_bf16_ ? Widen(static_cast<const bf16*>(data_)[i])
                    : static_cast<const float*>(data_)[i];
  }

 private:
  const void* data_;
  bool is_bf16_;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_PARAMETER_VIEW_CUH_
