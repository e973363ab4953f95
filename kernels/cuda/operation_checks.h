#ifndef PLUMBLINE_KERNELS_CUDA_OPERATION_CHECKS_H_
#define PLUMBLINE_KERNELS_CUDA_OPERATION_CHECKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops.h"

namespace plumbline {

// The widest head that the attention kernels are compiled for.
inline constexpr int64_t kMostHeadWidth = 128;

// Operation::Check of every operation on a GPU: whether the types and shapes of `call` are those
// that kernels/ops.h gives the operation in `precision`. `implementation` begins the message. What
// only one kernel cannot do, it says in its own Check.
absl::Status CheckCall(absl::string_view implementation, Precision precision, OpKind op,
                       const ForwardCall& call);

// Whether the rows of all batch items lie at one stride, so that they can be read as one matrix.
inline bool IsOneMatrix(const Tensor& tensor) {
  return tensor.batch == 1 || tensor.batch_stride == tensor.rows * tensor.row_stride;
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_OPERATION_CHECKS_H_
