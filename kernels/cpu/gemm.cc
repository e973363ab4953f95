#include "kernels/cpu/gemm.h"

#include <immintrin.h>

#include <algorithm>

#include "kernels/numerics/bfloat16.h"

namespace plumbline {
namespace {

// A task computes a tile of C of kTileRows by Tile<T>::kColumns, in micro-tiles of kMicroRows by
// two vectors, whose 12 sums live in registers. Everything of a task lies in its own workspace and
// fits a second-level cache.
constexpr int64_t kMicroRows = 6;
constexpr int64_t kTileRows = 96;
static_assert(kTileRows % kMicroRows == 0);

template <typename T>
struct Simd;

template <>
struct Simd<float> {
  using Vector = __m256;
  static constexpr int64_t kLanes = 8;
  static Vector Zero() { return _mm256_setzero_ps(); }
  static Vector Load(const float* from) { return _mm256_load_ps(from); }
  static void Store(float* to, Vector x) { _mm256_store_ps(to, x); }
  static Vector Broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static Vector MultiplyAdd(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector Add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
};

template <>
struct Simd<double> {
  using Vector = __m256d;
  static constexpr int64_t kLanes = 4;
  static Vector Zero() { return _mm256_setzero_pd(); }
  static Vector Load(const double* from) { return _mm256_load_pd(from); }
  static void Store(double* to, Vector x) { _mm256_store_pd(to, x); }
  static Vector Broadcast(const double* from) { return _mm256_broadcast_sd(from); }
  static Vector MultiplyAdd(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Vector Add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
};

template <typename T>
struct Tile {
  static constexpr int64_t kMicroColumns = 2 * Simd<T>::kLanes;
  static constexpr int64_t kColumns = 12 * kMicroColumns;
  // Elements of a task's three arrays, in the order they lie in its workspace.
  static constexpr int64_t kSums = kTileRows * kColumns;
  static constexpr int64_t kPackedA = kTileRows * kGemmBlock;
  static constexpr int64_t kPackedB = kGemmBlock * kColumns;
  static constexpr size_t kWorkspaceBytes = (kSums + kPackedA + kPackedB) * sizeof(T);
  static_assert(kSums * sizeof(T) % 64 == 0 && kPackedA * sizeof(T) % 64 == 0 &&
                kWorkspaceBytes % 64 == 0);
};

double Widen(double value) { return value; }
float Widen(float value) { return value; }
float Widen(bfloat16 value) { return WidenBf16(value); }

// Packs `count` lines of `depth` values, line i at from + i * line_stride, into groups of kGroup
// lines: to[group][depth][kGroup]. Missing lines of the last group are zeros; their products go
// nowhere.
template <int64_t kGroup, typename T, typename Source>
void Pack(const Source* from, int64_t line_stride, int64_t depth_stride, int64_t count,
          int64_t depth, T* to) {
  for (int64_t begin = 0; begin < count; begin += kGroup, to += kGroup * depth) {
    const Source* group = from + begin * line_stride;
    const int64_t lines = std::min(kGroup, count - begin);
    if (lines == kGroup && line_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < kGroup; ++i)
          to[p * kGroup + i] = static_cast<T>(Widen(group[p * depth_stride + i]));
      }
    } else if (lines == kGroup) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < kGroup; ++i)
          to[p * kGroup + i] = static_cast<T>(Widen(group[i * line_stride + p * depth_stride]));
      }
    } else {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < kGroup; ++i) {
          to[p * kGroup + i] =
              i < lines ? static_cast<T>(Widen(group[i * line_stride + p * depth_stride])) : T{0};
        }
      }
    }
  }
}

template <int64_t kGroup, typename T>
void PackOperand(DType dtype, const void* data, int64_t line_stride, int64_t depth_stride,
                 int64_t first_line, int64_t first_depth, int64_t count, int64_t depth, T* to) {
  const int64_t offset = first_line * line_stride + first_depth * depth_stride;
  if (dtype == DType::kBF16) {
    Pack<kGroup>(static_cast<const bfloat16*>(data) + offset, line_stride, depth_stride, count,
                 depth, to);
  } else if (dtype == DType::kF64) {
    Pack<kGroup>(static_cast<const double*>(data) + offset, line_stride, depth_stride, count, depth,
                 to);
  } else {
    Pack<kGroup>(static_cast<const float*>(data) + offset, line_stride, depth_stride, count, depth,
                 to);
  }
}

// The sums of one block of k for one micro-tile, put (first block) or added to `sums`.
template <typename T>
void MultiplyMicroTile(const T* a, const T* b, int64_t depth, bool first, T* sums,
                       int64_t sums_stride) {
  using S = Simd<T>;
  typename S::Vector sum[kMicroRows][2];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kMicroRows; ++i) sum[i][0] = sum[i][1] = S::Zero();
  for (int64_t p = 0; p < depth; ++p) {
    const auto b0 = S::Load(b);
    const auto b1 = S::Load(b + S::kLanes);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kMicroRows; ++i) {
      const auto broadcast = S::Broadcast(a + i);
      sum[i][0] = S::MultiplyAdd(broadcast, b0, sum[i][0]);
      sum[i][1] = S::MultiplyAdd(broadcast, b1, sum[i][1]);
    }
    a += kMicroRows;
    b += 2 * S::kLanes;
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kMicroRows; ++i) {
    T* to = sums + i * sums_stride;
    if (first) {
      S::Store(to, sum[i][0]);
      S::Store(to + S::kLanes, sum[i][1]);
    } else {
      S::Store(to, S::Add(S::Load(to), sum[i][0]));
      S::Store(to + S::kLanes, S::Add(S::Load(to + S::kLanes), sum[i][1]));
    }
  }
}

}  // namespace

template <typename Accumulator>
size_t GemmWorkspaceBytes(int threads) {
  return Tile<Accumulator>::kWorkspaceBytes * static_cast<size_t>(threads);
}

template <typename Accumulator>
void Gemm(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
          GemmEpilogue<Accumulator> epilogue, absl::Span<uint8_t> workspace, ThreadPool& threads) {
  using T = Tile<Accumulator>;
  const int64_t tiles_m = (shape.m + kTileRows - 1) / kTileRows;
  const int64_t tiles_n = (shape.n + T::kColumns - 1) / T::kColumns;
  const auto run_tile = [&](int64_t tile, int slot) {
    // Neighbouring tasks share columns of B, which is usually the larger operand.
    const int64_t first_row = tile % tiles_m * kTileRows;
    const int64_t first_column = tile / tiles_m * T::kColumns;
    const int64_t rows = std::min(kTileRows, shape.m - first_row);
    const int64_t columns = std::min(T::kColumns, shape.n - first_column);
    Accumulator* const sums =
        reinterpret_cast<Accumulator*>(workspace.data() + T::kWorkspaceBytes * slot);
    Accumulator* const packed_a = sums + T::kSums;
    Accumulator* const packed_b = packed_a + T::kPackedA;
    if (shape.k == 0) std::fill(sums, sums + T::kSums, Accumulator{0});
    for (int64_t first_k = 0; first_k < shape.k; first_k += kGemmBlock) {
      const int64_t depth = std::min(kGemmBlock, shape.k - first_k);
      PackOperand<kMicroRows>(a.dtype, a.data, a.row_stride, a.column_stride, first_row, first_k,
                              rows, depth, packed_a);
      PackOperand<T::kMicroColumns>(b.dtype, b.data, b.column_stride, b.row_stride, first_column,
                                    first_k, columns, depth, packed_b);
      for (int64_t j = 0; j < columns; j += T::kMicroColumns) {
        for (int64_t i = 0; i < rows; i += kMicroRows) {
          MultiplyMicroTile(packed_a + i * depth, packed_b + j * depth, depth, first_k == 0,
                            sums + i * T::kColumns + j, T::kColumns);
        }
      }
    }
    for (int64_t i = 0; i < rows; ++i)
      epilogue(first_row + i, first_column, columns, sums + i * T::kColumns);
  };
  threads.ParallelForWithSlot(0, tiles_m * tiles_n, 1,
                              [&](int64_t tile, int64_t, int slot) { run_tile(tile, slot); });
}

template size_t GemmWorkspaceBytes<float>(int);
template size_t GemmWorkspaceBytes<double>(int);
template void Gemm<float>(const GemmShape&, const GemmOperand&, const GemmOperand&,
                          GemmEpilogue<float>, absl::Span<uint8_t>, ThreadPool&);
template void Gemm<double>(const GemmShape&, const GemmOperand&, const GemmOperand&,
                           GemmEpilogue<double>, absl::Span<uint8_t>, ThreadPool&);

}  // namespace plumbline
