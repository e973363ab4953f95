#include "kernels/candidate/cpu/float_tile.h"

#include <immintrin.h>

#include <algorithm>

namespace plumbline::candidate {
namespace {

constexpr int64_t kRunLength = 256;
// Twelve accumulators, two values of B and one of A fill AVX2's sixteen registers but one.
constexpr int kMaxTileRows = 6;
static_assert(kStripWidth == 16, "two AVX2 registers");

// Rows [0, kRows) of one strip of C, over one run of k.
template <int kRows>
void MultiplyRun(int64_t k, const float* a, int64_t row_stride, int64_t k_stride, const float* b,
                 float* c, int64_t c_stride, bool add) {
  __m256 sum[kRows][2];
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
  for (int64_t step = 0; step < k; ++step) {
    const __m256 b0 = _mm256_load_ps(b);
    const __m256 b1 = _mm256_load_ps(b + 8);
    for (int i = 0; i < kRows; ++i) {
      const __m256 value = _mm256_broadcast_ss(a + i * row_stride);
      sum[i][0] = _mm256_fmadd_ps(value, b0, sum[i][0]);
      sum[i][1] = _mm256_fmadd_ps(value, b1, sum[i][1]);
    }
    a += k_stride;
    b += kStripWidth;
  }
  for (int i = 0; i < kRows; ++i) {
    float* row = c + i * c_stride;
    for (int half = 0; half < 2; ++half) {
      float* to = row + 8 * half;
      const __m256 value = add ? _mm256_add_ps(_mm256_loadu_ps(to), sum[i][half]) : sum[i][half];
      _mm256_storeu_ps(to, value);
    }
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
