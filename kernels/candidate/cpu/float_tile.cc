#include "kernels/candidate/cpu/float_tile.h"

#include <immintrin.h>

#include <algorithm>

namespace plumbline::candidate {
namespace {

constexpr int64_t kRunLength = 256;
// Twelve accumulators, two values of B and one of A fill AVX2's sixteen registers but one.
constexpr int kMaxTileRows = 6;
static_assert(kStripWidth == 16, "two AVX2 registers");

// Adds to, or replaces, eight values of C.
inline void WriteSums(__m256 sums, bool add, float* to) {
  _mm256_storeu_ps(to, add ? _mm256_add_ps(_mm256_loadu_ps(to), sums) : sums);
}

// Rows [0, kRows) of one strip of C, over one run of k. Every loop over rows is unrolled: an array
// of sums that is ever indexed by a variable would live in memory.
template <int kRows>
void MultiplyRun(int64_t k, const float* a, int64_t row_stride, int64_t k_stride, const float* b,
                 float* c, int64_t c_stride, bool add) {
  __m256 left[kRows], right[kRows];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = _mm256_setzero_ps();
  for (int64_t step = 0; step < k; ++step) {
    const __m256 b_left = _mm256_load_ps(b);
    const __m256 b_right = _mm256_load_ps(b + 8);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const __m256 value = _mm256_broadcast_ss(a + i * row_stride);
      left[i] = _mm256_fmadd_ps(value, b_left, left[i]);
      right[i] = _mm256_fmadd_ps(value, b_right, right[i]);
    }
    a += k_stride;
    b += kStripWidth;
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    WriteSums(left[i], add, c + i * c_stride);
    WriteSums(right[i], add, c + i * c_stride + 8);
  }
}

using RunFunction = void (*)(int64_t, const float*, int64_t, int64_t, const float*, float*, int64_t,
                             bool);
constexpr RunFunction kRunFunctions[kMaxTileRows + 1] = {
    nullptr,        MultiplyRun<1>, MultiplyRun<2>, MultiplyRun<3>,
    MultiplyRun<4>, MultiplyRun<5>, MultiplyRun<6>};

}  // namespace

void TileProduct(int64_t m, int64_t n, int64_t k, TileRows a, TileStrips b, float* c,
                 int64_t c_stride, TileWrite write) {
  int64_t start = 0;
  do {
    const int64_t length = std::min(kRunLength, k - start);
    const bool add = write == TileWrite::kAdd || start > 0;
    for (int64_t strip = 0; strip < n / kStripWidth; ++strip) {
      const float* b_run = b.data + strip * b.strip_stride + start * kStripWidth;
      for (int64_t row = 0; row < m; row += kMaxTileRows) {
        const int64_t rows = std::min<int64_t>(kMaxTileRows, m - row);
        kRunFunctions[rows](length, a.data + row * a.row_stride + start * a.k_stride, a.row_stride,
                            a.k_stride, b_run, c + row * c_stride + strip * kStripWidth, c_stride,
                            add);
      }
    }
    start += length;
  } while (start < k);
}

}  // namespace plumbline::candidate
