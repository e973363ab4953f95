#ifndef PLUMBLINE_KERNELS_CUDA_CONVERT_H_
#define PLUMBLINE_KERNELS_CUDA_CONVERT_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline {

// Device::Convert on a GPU, enqueued: the values of `from` into `to`, which has the same batch (or
// `from` has batch 1), rows and width. kBF16, kF32 and kF64 convert to one another with at most one
// rounding; any other type only to itself. INVALID_ARGUMENT otherwise.
absl::Status ConvertOnCuda(cudaStream_t stream, const Tensor& from, const Tensor& to);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_CONVERT_H_
