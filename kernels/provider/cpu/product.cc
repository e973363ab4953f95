#include "kernels/provider/cpu/product.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/thread_pool.h"
#include "kernels/provider/cpu/blas.h"
#include "kernels/provider/cpu/values.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

// Results of one sgemm call, each way. Large enough that widening the operands of a tile (1/128 of
// the multiplications) costs nothing, small enough that a tile of the longest sums stays in cache.
constexpr int64_t kTile = 128;

constexpr int64_t kSplitSlices = 4;
constexpr int64_t kSliceStep = 16;

constexpr int64_t kColumnRun = 64;

// What one tile needs: both operands over the whole sum, and the results.
int64_t TileFloats(int64_t longest_sum) { return 2 * kTile * longest_sum + kTile * kTile; }

// Widens the part of a factor with outer numbers [first, first + count): (count, inner) row-major
// if the width is summed over, else (inner, count).
BlasMatrix LoadTile(const Factor& factor, int64_t first, int64_t count, float* to) {
  const Tensor& values = factor.values;
  if (factor.summed == SummedAxis::kWidth) {
    for (int64_t i = 0; i < count; ++i)
      LoadFlatRow(values, first + i, 0, values.width, factor.cast, to + i * values.width);
    return {to, values.width, false};
  }
  const int64_t inner = factor.Inner();
  for (int64_t k = 0; k < inner; ++k)
    LoadFlatRow(values, k, first, count, factor.cast, to + k * count);
  return {to, count, true};
}

// The terms of a sum that one sgemm call takes.
int64_t SliceLength(GemmPath path, int64_t inner) {
  if (path == GemmPath::kWholeSum) return inner;
  const int64_t quarter = (inner + kSplitSlices - 1) / kSplitSlices;
  return (quarter + kSliceStep - 1) / kSliceStep * kSliceStep;
}

// The terms from `first` on of a loaded operand: columns of `matrix`, or rows where its memory
// holds the transpose.
BlasMatrix FromTerm(const BlasMatrix& matrix, int64_t first) {
  const int64_t stride = matrix.transposed ? matrix.row_stride : 1;
  return {matrix.values + first * stride, matrix.row_stride, matrix.transposed};
}

}  // namespace

size_t ProductWorkspaceBytes(int64_t longest_sum, const ExecutionContext& context) {
  return SlotCount(context) * TileFloats(longest_sum) * sizeof(float);
}

void Multiply(const ExecutionContext& context, const Product& product) {
  const int64_t rows = product.left.Outer();
  const int64_t columns = product.right.Outer();
  const int64_t inner = product.left.Inner();
  const int64_t slice = SliceLength(product.path, inner);
  const int64_t column_tiles = (columns + kTile - 1) / kTile;

  const int64_t tiles = (rows + kTile - 1) / kTile * column_tiles;
  context.threads->ParallelForWithSlot(0, tiles, 1, [&](int64_t task, int64_t, int slot) {
    const int64_t first_row = task / column_tiles * kTile;
    const int64_t first_column = task % column_tiles * kTile;
    const int64_t tile_rows = std::min(kTile, rows - first_row);
    const int64_t tile_columns = std::min(kTile, columns - first_column);
    float* const left = SlotScratch(context, slot, TileFloats(inner));
    float* const right = left + kTile * inner;
    float* const results = right + kTile * inner;

    const BlasMatrix a = LoadTile(product.left, first_row, tile_rows, left);
    const BlasMatrix b = LoadTile(product.right, first_column, tile_columns, right);
    if (inner == 0) std::fill_n(results, tile_rows * kTile, 0.0f);
    for (int64_t k = 0; k < inner; k += slice) {
      BlasMatrix b_slice = FromTerm(b, k);
      b_slice.transposed = !b_slice.transposed;  // sgemm wants right(k, j)
      Sgemm(tile_rows, tile_columns, std::min(slice, inner - k), FromTerm(a, k), b_slice,
            /*accumulate=*/k > 0, results, kTile);
    }

    std::array<float, kTile> bias = {};
    if (!product.bias.IsNull()) {
      LoadFlatRow(product.bias, 0, first_column, tile_columns, product.bias.dtype, bias.data());
    }
    for (int64_t i = 0; i < tile_rows; ++i) {
      float* const row = results + i * kTile;
      if (!product.bias.IsNull()) {
        for (int64_t j = 0; j < tile_columns; ++j) row[j] += bias[j];
      }
      RoundValues(product.rounding, row, tile_columns);
      StoreFlatRow(row, product.result, first_row + i, first_column, tile_columns);
    }
  });
}

void SumRows(const ExecutionContext& context, const Tensor& values, const Tensor& result) {
  context.threads->ParallelFor(0, values.width, kColumnRun, [&](int64_t first, int64_t end) {
    const int64_t count = end - first;
    std::array<float, kColumnRun> sums = {};
    std::array<float, kColumnRun> row;
    for (int64_t r = 0; r < values.batch * values.rows; ++r) {
      LoadFlatRow(values, r, first, count, values.dtype, row.data());
      for (int64_t j = 0; j < count; ++j) sums[j] += row[j];
    }
    StoreFlatRow(sums.data(), result, 0, first, count);
  });
}

}  // namespace plumbline::provider
