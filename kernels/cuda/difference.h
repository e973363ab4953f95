#ifndef PLUMBLINE_KERNELS_CUDA_DIFFERENCE_H_
#define PLUMBLINE_KERNELS_CUDA_DIFFERENCE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/difference.h"
#include "kernels/tensor.h"

namespace plumbline {

// INVALID_ARGUMENT unless MeasureDifference can compare the two, for `ranks` that it can find.
absl::Status CheckDifference(const Tensor& reference, const Tensor& x,
                             absl::Span<const int64_t> ranks);

// Scratch that MeasureDifference needs.
size_t DifferenceScratchBytes();

// Device::Difference on a GPU, for tensors and ranks that CheckDifference accepts. Waits for the
// stream.
absl::StatusOr<TensorDifference> MeasureDifference(cudaStream_t stream, const Tensor& reference,
                                                   const Tensor& x, absl::Span<const int64_t> ranks,
                                                   void* scratch);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_DIFFERENCE_H_
