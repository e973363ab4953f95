// How the families' matrix products name their operands.
#ifndef PLUMBLINE_KERNELS_CUDA_PRODUCT_H_
#define PLUMBLINE_KERNELS_CUDA_PRODUCT_H_

#include <cstdint>

#include "kernels/tensor.h"

namespace plumbline::cuda {

// The axis of an operand that a product sums over.
enum class SummedAxis { kWidth, kRows };

// One operand of C(m, n) = sum over k of left(m, k) right(n, k): a tensor whose rows are those of
// all batch items, one after another (IsOneMatrix). k runs along `summed`, m or n along the other
// axis.
//   y = x W^T:   {x, kWidth}, {W, kWidth}
//   dx = dy W:   {dy, kWidth}, {W, kRows}
//   dW = dy^T x: {dy, kRows}, {x, kRows}
struct Operand {
  Tensor tensor;
  SummedAxis summed = SummedAxis::kWidth;

  int64_t AllRows() const { return tensor.batch * tensor.rows; }
  int64_t Extent() const { return summed == SummedAxis::kWidth ? AllRows() : tensor.width; }
  int64_t SummedExtent() const { return summed == SummedAxis::kWidth ? tensor.width : AllRows(); }
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_PRODUCT_H_
