// Moving rows by index. Values have one reading here (each is copied or rounded once), so that all
// families share these.
#ifndef PLUMBLINE_KERNELS_CUDA_MOVE_ROWS_H_
#define PLUMBLINE_KERNELS_CUDA_MOVE_ROWS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::cuda {

// Enqueued. `from` and `to` are bfloat16 or float32, of equal batch and width; `indices`
// (1, rows, 1) is int64 and shared by the batch.

// Row i of `from` to row indices[i] of `to`, in every item.
absl::Status ScatterRows(cudaStream_t stream, const Tensor& from, const Tensor& indices,
                         const Tensor& to);
// Row indices[i] of `from` to row i of `to`, in every item.
absl::Status GatherRows(cudaStream_t stream, const Tensor& from, const Tensor& indices,
                        const Tensor& to);
// Zeros in every row of `to`.
absl::Status ClearRows(cudaStream_t stream, const Tensor& to);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_MOVE_ROWS_H_
