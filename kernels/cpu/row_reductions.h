// Sums along one row in one fixed order. The provider and the candidate share these, because a
// candidate's norm must have the provider's bytes, statistics included.
//
// Order: 32 lanes; lane j takes elements j, j + 32, j + 64, ... in turn, each by one fma (a sum: by
// one addition) onto the lane's value, which starts at 0. Then the lanes are folded, lane j += lane
// j + 16, then + 8, + 4, + 2, + 1, and lane 0 is the sum. The order depends on the row's length
// alone.
#ifndef PLUMBLINE_KERNELS_CPU_ROW_REDUCTIONS_H_
#define PLUMBLINE_KERNELS_CPU_ROW_REDUCTIONS_H_

#include <cstdint>

namespace plumbline {

inline constexpr int64_t kReductionLanes = 32;

// `lanes` has kReductionLanes values, which it overwrites.
template <typename Accumulator>
Accumulator FoldLanes(Accumulator* lanes) {
  for (int64_t half = kReductionLanes / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

inline float FusedMultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double FusedMultiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }

// The sum of value(i), i < size: value(i) gives an Accumulator, added in the lanes.
template <typename Accumulator, typename Value>
Accumulator SumInLanes(int64_t size, Value value) {
  Accumulator lanes[kReductionLanes] = {};
  int64_t i = 0;
  for (; i + kReductionLanes <= size; i += kReductionLanes) {
    for (int64_t j = 0; j < kReductionLanes; ++j) lanes[j] += value(i + j);
  }
  for (int64_t j = 0; i + j < size; ++j) lanes[j] += value(i + j);
  return FoldLanes(lanes);
}

// The sum of a[i] * b[i], accumulated as Accumulator (float or double).
template <typename Accumulator = float>
Accumulator RowDot(const float* a, const float* b, int64_t size) {
  Accumulator lanes[kReductionLanes] = {};
  int64_t i = 0;
  for (; i + kReductionLanes <= size; i += kReductionLanes) {
    for (int64_t j = 0; j < kReductionLanes; ++j) {
      lanes[j] = FusedMultiplyAdd(static_cast<Accumulator>(a[i + j]),
                                  static_cast<Accumulator>(b[i + j]), lanes[j]);
    }
  }
  for (int64_t j = 0; i + j < size; ++j) {
    lanes[j] = FusedMultiplyAdd(static_cast<Accumulator>(a[i + j]),
                                static_cast<Accumulator>(b[i + j]), lanes[j]);
  }
  return FoldLanes(lanes);
}

template <typename Accumulator = float>
Accumulator RowSumOfSquares(const float* x, int64_t size) {
  return RowDot<Accumulator>(x, x, size);
}

template <typename Accumulator = float>
Accumulator RowSum(const float* x, int64_t size) {
  return SumInLanes<Accumulator>(size, [x](int64_t i) { return static_cast<Accumulator>(x[i]); });
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CPU_ROW_REDUCTIONS_H_
