// Two tensors of one shape, read in runs of neighbouring values, for kernels that compare them.
#ifndef PLUMBLINE_KERNELS_CUDA_VALUE_PAIRS_CUH_
#define PLUMBLINE_KERNELS_CUDA_VALUE_PAIRS_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/tensor.h"

namespace plumbline::cuda {

template <typename T>
struct BitsOf;
template <>
struct BitsOf<bf16> {
  using Type = uint16_t;
};
template <>
struct BitsOf<float> {
  using Type = uint32_t;
};
template <>
struct BitsOf<double> {
  using Type = uint64_t;
};

__device__ inline float Single(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ inline float Single(uint32_t bits) { return __uint_as_float(bits); }
__device__ inline double Double(uint16_t bits) { return static_cast<double>(Single(bits)); }
__device__ inline double Double(uint32_t bits) { return static_cast<double>(Single(bits)); }
__device__ inline double Double(uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// R and X are the types of the reference and of what is compared with it: bf16, float or double.
template <typename R, typename X>
class ValuePairs {
 public:
  using ReferenceBits = typename BitsOf<R>::Type;
  using XBits = typename BitsOf<X>::Type;
  static constexpr int kRun = 8;
  static constexpr bool kIsWide = sizeof(R) > 4 || sizeof(X) > 4;

  // `count` values; behind them, up to kRun, are zeros on both sides.
  struct Run {
    cuda::Run<ReferenceBits, kRun> reference;
    cuda::Run<XBits, kRun> x;
    int count;
  };

  ValuePairs(Tensor reference, Tensor x) : reference_(reference), x_(x) {
    // A dense tensor is one row.
    if (reference.IsDense() && x.IsDense()) {
      x.width = x.NumElements();
      x.rows = x.batch = 1;
    }
    const int64_t rows = x.batch * x.rows;
    rows_ = x.rows;
    width_ = x.width;
    runs_in_row_ = (width_ + kRun - 1) / kRun;
    runs_ = rows * runs_in_row_;
    one_row_ = rows == 1;
    const auto is_aligned = [&](const Tensor& tensor) {
      const uint64_t boundary = std::min<uint64_t>(kRun * DTypeSize(tensor.dtype), 16);
      return reinterpret_cast<uint64_t>(tensor.data) % boundary == 0 &&
             (one_row_ || (tensor.row_stride % kRun == 0 && tensor.batch_stride % kRun == 0));
    };
    aligned_ = is_aligned(reference) && is_aligned(x);
  }

  // Runs are numbered through all rows; a row's last one may be short.
  __host__ __device__ int64_t runs() const { return runs_; }

  __device__ void Load(int64_t run, Run* to) const {
    int64_t flat_row = 0, column = run * kRun;
    const ReferenceBits* from = reference_.data + column;
    const XBits* from_x = x_.data + column;
    if (!one_row_) {
      flat_row = run / runs_in_row_;
      column = (run - flat_row * runs_in_row_) * kRun;
      const int64_t item = flat_row / rows_;
      from = reference_.Row(flat_row - item * rows_, item) + column;
      from_x = x_.Row(flat_row - item * rows_, item) + column;
    }
    const int64_t left = width_ - column;
    if (aligned_ && left >= kRun) {
      LoadWhole(from, &to->reference);
      LoadWhole(from_x, &to->x);
      to->count = kRun;
      return;
    }
    to->count = static_cast<int>(left < kRun ? left : kRun);
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      to->reference.values[i] = i < to->count ? from[i] : 0;
      to->x.values[i] = i < to->count ? from_x[i] : 0;
    }
  }

  // The row-major index of a run's first value.
  __device__ int64_t Index(int64_t run) const {
    const int64_t row = run / runs_in_row_;
    return row * width_ + (run - row * runs_in_row_) * kRun;
  }

  // By their bits where the types are the same, else by their values.
  __device__ static bool Differ(ReferenceBits reference, XBits x) {
    if constexpr (std::is_same_v<R, X>) {
      return reference != x;
    } else if constexpr (kIsWide) {
      return !(Double(reference) == Double(x));
    } else {
      return !(Single(reference) == Single(x));
    }
  }

  // The bits of |reference - x|, rounded to float32 from float64.
  __device__ static uint32_t DifferenceBits(ReferenceBits reference, XBits x) {
    if constexpr (kIsWide) {
      return __float_as_uint(fabsf(__double2float_rn(Double(reference) - Double(x))));
    } else {
      // The same bits: of two float32 values, the float64 difference has more than twice the bits
      // plus two, so that rounding it a second time changes nothing.
      return __float_as_uint(fabsf(Single(reference) - Single(x)));
    }
  }

 private:
  // 16 bytes at a time, read once.
  template <typename Bits>
  __device__ static void LoadWhole(const Bits* from, cuda::Run<Bits, kRun>* to) {
    static_assert(sizeof(*to) % sizeof(uint4) == 0);
#pragma unroll
    for (size_t i = 0; i < sizeof(*to) / sizeof(uint4); ++i) {
      reinterpret_cast<uint4*>(to)[i] = __ldcs(reinterpret_cast<const uint4*>(from) + i);
    }
  }

  View<const ReferenceBits> reference_;
  View<const XBits> x_;
  int64_t rows_;  // of one batch item
  int64_t width_;
  int64_t runs_in_row_;
  int64_t runs_;
  bool one_row_;
  bool aligned_;  // every whole run lies on a boundary of 16 bytes
};

// Calls body(number, run) for the runs of one thread of a grid: its own number in the grid, and
// every so many as the grid has threads on. A few are read before the first of them is used.
template <int kAtOnce, typename Pairs, typename Body>
__device__ void ForEachOwnRun(const Pairs& pairs, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; first + (kAtOnce - 1) * step < pairs.runs(); first += kAtOnce * step) {
    typename Pairs::Run runs[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) pairs.Load(first + i * step, &runs[i]);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) body(first + i * step, runs[i]);
  }
  for (; first < pairs.runs(); first += step) {
    typename Pairs::Run run;
    pairs.Load(first, &run);
    body(first, run);
  }
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_VALUE_PAIRS_CUH_
