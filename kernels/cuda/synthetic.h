#ifndef PLUMBLINE_KERNELS_CUDA_SYNTHETIC_H_
#define PLUMBLINE_KERNELS_CUDA_SYNTHETIC_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/tensor.h"

namespace plumbline {

// FillSynthetic of kernels/numerics/synthetic.h, on the GPU and bit for bit: all values of tensor
// `name`, into `to`, which is dense and bfloat16 or float32. Enqueued.
absl::Status FillSyntheticOnCuda(cudaStream_t stream, absl::string_view name, uint64_t seed,
                                 SyntheticRecipe recipe, const Tensor& to);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_SYNTHETIC_H_
