// Products of small float32 tiles, the inner loops of the candidate's attention.
//
//   C(m, n) = A(m, k) B(k, n), or C += A B
//
// Order of reduction: k is cut into runs of 256; within a run one fused multiply-add after another
// from zero, in order of k; the runs are added in order. So an element's value depends on its row
// of A and its column of B alone: not on m, n, or where in the tile it lies.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_FLOAT_TILE_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_FLOAT_TILE_H_

#include <cstdint>

namespace plumbline::candidate {

// B is packed in strips of this many columns: strip s holds, for k = 0, 1, ..., the values
// B(k, 16 s ... 16 s + 15), 32-byte aligned. n is therefore a multiple of it; columns beyond the
// true width are zeros.
constexpr int64_t kStripWidth = 16;

constexpr int64_t RoundUpToStrip(int64_t count) {
  return (count + kStripWidth - 1) / kStripWidth * kStripWidth;
}

// A(i, k) is data[i * row_stride + k * k_stride]: a matrix or its transpose.
struct TileRows {
  const float* data;
  int64_t row_stride;
  int64_t k_stride;
};

// B's strips; strip s begins at data + s * strip_stride.
struct TileStrips {
  const float* data;
  int64_t strip_stride;
};

enum class TileWrite { kOverwrite, kAdd };

// Any m and k (k = 0 gives zeros), n a multiple of kStripWidth; row i of C begins at
// c + i * c_stride.
void TileProduct(int64_t m, int64_t n, int64_t k, TileRows a, TileStrips b, float* c,
                 int64_t c_stride, TileWrite write);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_FLOAT_TILE_H_
