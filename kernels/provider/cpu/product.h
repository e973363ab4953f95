// Matrix products by OpenBLAS, with the rounding of the provider's library GEMMs: operands widened
// to float32, accumulated in float32, the bias added, one rounding.
//
//   result(i, j) = round(sum over k of left(i, k) right(j, k) [+ bias(j)])
//
// Order of reduction: that of OpenBLAS's sgemm for a tile of at most 128 x 128 results and, with
// GemmPath::kWholeSum, the whole of k. With kSplitSum k is cut into slices of a quarter of it,
// rounded up to 16 (the step of a tensor core's k), and the slices' sums are added in ascending
// order, in float32. Tiles and slices depend on the shapes alone, so the bits do not depend on the
// threads.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_PRODUCT_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "common/dtype.h"
#include "kernels/ops.h"
#include "kernels/provider/cpu/gemm_path.h"

namespace plumbline::provider {

// A factor is a view, bfloat16 or float32, whose batch items are taken for further rows. One of its
// axes is summed over, the other numbers the results.
enum class SummedAxis { kWidth, kRows };

struct Factor {
  Tensor values;
  SummedAxis summed = SummedAxis::kWidth;
  // What the values are rounded to before they are multiplied.
  DType cast = DType::kF32;

  int64_t Outer() const {
    return summed == SummedAxis::kWidth ? values.batch * values.rows : values.width;
  }
  int64_t Inner() const {
    return summed == SummedAxis::kWidth ? values.width : values.batch * values.rows;
  }
};

struct Product {
  GemmPath path;
  Factor left;
  Factor right;
  Tensor bias;                    // (1, right.Outer()); null: none
  DType rounding = DType::kBF16;  // the type of the one rounding; kF32: none
  // batch * rows = left.Outer(), width = right.Outer(). A type wider than `rounding` widens what
  // was rounded.
  Tensor result;
};

// Workspace for products whose sums have at most `longest_sum` terms.
size_t ProductWorkspaceBytes(int64_t longest_sum, const ExecutionContext& context);

void Multiply(const ExecutionContext& context, const Product& product);

// result(j) = round(sum over all rows of values(row, j)), a float32 sum in row order, batch item
// after item, and one rounding to the result's type: the gradient of a bias.
void SumRows(const ExecutionContext& context, const Tensor& values, const Tensor& result);

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_PRODUCT_H_
