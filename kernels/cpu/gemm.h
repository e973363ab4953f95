// The project's own matrix product, for the golden and the candidate.
//
//   C(m, n) = sum over k of A(m, k) B(k, n)
//
// A and B may have any strides, so that y = x W^T, dx = dy W and dW = dy^T x are this one product.
//
// Order of every sum: k in blocks of kGemmBlock, cut at the end; inside a block one fma a k,
// ascending, onto a value that starts at 0; the blocks' sums added in ascending order to the first
// one. All in the accumulator's type. It depends on the extent of k and on nothing else: not on m
// or n, the place of an element, the strides, the tiles or the threads.
#ifndef PLUMBLINE_KERNELS_CPU_GEMM_H_
#define PLUMBLINE_KERNELS_CPU_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/dtype.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor.h"

namespace plumbline {

inline constexpr int64_t kGemmBlock = 256;

// A matrix that a product reads: element (i, j) is data[i * row_stride + j * column_stride].
struct GemmOperand {
  const void* data = nullptr;
  DType dtype = DType::kF32;  // kF32, kBF16, or with accumulators of double kF64
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  // One batch item of a tensor as (rows, width). A tensor whose batch items follow one another may
  // be read as (batch * rows, width) from item 0.
  static GemmOperand Of(const Tensor& tensor, int64_t item = 0) {
    const int64_t offset_bytes =
        item * tensor.batch_stride * static_cast<int64_t>(DTypeSize(tensor.dtype));
    return {static_cast<const char*>(tensor.data) + offset_bytes, tensor.dtype, tensor.row_stride,
            1};
  }
  GemmOperand Transposed() const { return {data, dtype, column_stride, row_stride}; }
};

struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// Takes elements [column, column + count) of row `row` of C, final and not yet rounded; each
// element once, from any thread.
template <typename Accumulator>
using GemmEpilogue =
    absl::FunctionRef<void(int64_t row, int64_t column, int64_t count, const Accumulator* values)>;

// Bytes of scratch that Gemm<Accumulator> needs with a pool of `threads`; of any shape.
template <typename Accumulator>
size_t GemmWorkspaceBytes(int threads);

// Accumulator is float or double. `workspace` is 64-byte aligned and holds GemmWorkspaceBytes of
// the pool's threads. With k = 0 every element is 0.
template <typename Accumulator>
void Gemm(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
          GemmEpilogue<Accumulator> epilogue, absl::Span<uint8_t> workspace, ThreadPool& threads);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CPU_GEMM_H_
