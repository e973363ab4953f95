// Operations whose values have one reading, so that all CUDA families share them. What
// distinguishes the families' is the name in their errors and their precision.
#ifndef PLUMBLINE_KERNELS_CUDA_SHARED_OPERATIONS_H_
#define PLUMBLINE_KERNELS_CUDA_SHARED_OPERATIONS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "kernels/ops.h"

namespace plumbline::cuda {

// `implementation` must outlive what is made.

// row_movement.cc
std::shared_ptr<const Operation> MakeScatterRows(absl::string_view implementation,
                                                 Precision precision);
std::shared_ptr<const Operation> MakeGatherRows(absl::string_view implementation,
                                                Precision precision);
std::shared_ptr<const Operation> MakeCast(absl::string_view implementation, Precision precision);

// elementwise_sum.cu
std::shared_ptr<const Operation> MakeResidual(absl::string_view implementation,
                                              Precision precision);
std::shared_ptr<const Operation> MakeGradSum(absl::string_view implementation, Precision precision);

// The candidate's and the provider's. time_projection.cu
std::shared_ptr<const Operation> MakeTimeProjection(absl::string_view implementation);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_SHARED_OPERATIONS_H_
