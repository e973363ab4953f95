#ifndef PLUMBLINE_KERNELS_CUDA_TORCH_NORMAL_H_
#define PLUMBLINE_KERNELS_CUDA_TORCH_NORMAL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/numerics/torch_normal.h"

namespace plumbline {

// What torch.randn writes into a float32 tensor of `count` values on a GPU, bit for bit: Philox
// words as cuRAND draws them and its Box-Muller with CUDA's logf and __sincosf. The GPU that is
// imitated is the draw's; the bits do not depend on the one that runs this. Enqueued.
absl::Status DrawTorchNormalOnCuda(cudaStream_t stream, const TorchNormalDraw& draw, float* to,
                                   int64_t count);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_TORCH_NORMAL_H_
