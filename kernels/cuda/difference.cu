// Sums: float64, a term and its addition by one fma. Runs of 8 neighbouring values of a row (a
// dense tensor is one row) are numbered through; block b takes runs 4096 b and on, its thread t the
// runs t, t + 256, ..., in order onto sums of its own. Then 256 sums are folded in halves, t += t +
// 128,
// + 64, ...; and so are, in one block, those of all blocks, of which thread t first takes numbers
// t, t + 256, ... The order depends on the shape and on whether both sides are dense.
//
// Ranks: the bits of non-negative floats are in the order of their values. Three counts, of the
// upper 11 bits, of the next 10 and of the last 10 where the bits before are those of a wanted
// rank, find the value of each rank exactly.
#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/difference.h"
#include "kernels/cuda/rounding.cuh"
#include "kernels/cuda/workspace.h"
#include "kernels/device.h"

namespace plumbline {
namespace {

using cuda::bf16;

constexpr int kThreads = 256;
constexpr int kValues = 8;  // of a run
constexpr int64_t kRunsPerBlock = 4096;

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

__device__ double WidenBits(uint16_t bits) {
  return static_cast<double>(__uint_as_float(static_cast<uint32_t>(bits) << 16));
}
__device__ double WidenBits(uint32_t bits) { return static_cast<double>(__uint_as_float(bits)); }
__device__ double WidenBits(uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// Two tensors of one shape, run by run.
template <typename R, typename X>
struct Pair {
  using ReferenceBits = typename BitsOf<R>::Type;
  using XBits = typename BitsOf<X>::Type;

  cuda::View<const ReferenceBits> reference;
  cuda::View<const XBits> x;
  int64_t rows;   // of one batch item
  int64_t width;  // of a row
  int64_t runs_in_row;
  int64_t runs;
  bool aligned;  // every whole run lies on its own boundary

  Pair(Tensor a, Tensor b) : reference(a), x(b) {
    if (a.IsDense() && b.IsDense()) {
      b.width = b.NumElements();
      b.rows = b.batch = 1;
    }
    rows = b.rows;
    width = b.width;
    runs_in_row = (width + kValues - 1) / kValues;
    runs = b.batch * rows * runs_in_row;
    const auto is_aligned = [&](const Tensor& tensor) {
      const uint64_t run_bytes = kValues * DTypeSize(tensor.dtype);
      const bool rows_aligned = b.batch * rows == 1 || (tensor.row_stride % kValues == 0 &&
                                                        tensor.batch_stride % kValues == 0);
      return reinterpret_cast<uint64_t>(tensor.data) % std::min<uint64_t>(run_bytes, 16) == 0 &&
             rows_aligned;
    };
    aligned = is_aligned(a) && is_aligned(b);
  }

  // Calls body(index, reference bits, x bits) for the values of a run, in order; `index` is
  // row-major over the tensor.
  template <typename Body>
  __device__ void ForEachValue(int64_t run, Body body) const {
    const int64_t flat_row = run / runs_in_row;
    const int64_t column = (run - flat_row * runs_in_row) * kValues;
    const int64_t item = flat_row / rows;
    const ReferenceBits* const from = reference.Row(flat_row - item * rows, item) + column;
    const XBits* const from_x = x.Row(flat_row - item * rows, item) + column;
    const int64_t index = flat_row * width + column;
    if (aligned && column + kValues <= width) {
      const auto a = *reinterpret_cast<const cuda::Run<ReferenceBits, kValues>*>(from);
      const auto b = *reinterpret_cast<const cuda::Run<XBits, kValues>*>(from_x);
#pragma unroll
      for (int i = 0; i < kValues; ++i) body(index + i, a.values[i], b.values[i]);
      return;
    }
    const int count = static_cast<int>(
        min(static_cast<long long>(kValues), static_cast<long long>(width - column)));
    for (int i = 0; i < count; ++i) body(index + i, from[i], from_x[i]);
  }
};

struct Partial {
  double difference;
  double reference;
  double x;
  double product;
  double max_abs;
  double max_reference;
  int64_t differing;
  int64_t first;  // INT64_MAX: none
  int64_t nan[2];
  int64_t infinity[2];
};

__device__ Partial EmptyPartial() {
  Partial partial = {};
  partial.first = INT64_MAX;
  return partial;
}

__device__ void Join(const Partial& other, Partial* to) {
  to->difference += other.difference;
  to->reference += other.reference;
  to->x += other.x;
  to->product += other.product;
  to->max_abs = other.max_abs > to->max_abs ? other.max_abs : to->max_abs;
  to->max_reference =
      other.max_reference > to->max_reference ? other.max_reference : to->max_reference;
  to->differing += other.differing;
  to->first = other.first < to->first ? other.first : to->first;
  for (int side = 0; side < 2; ++side) {
    to->nan[side] += other.nan[side];
    to->infinity[side] += other.infinity[side];
  }
}

__device__ void Fold(const Partial& own, Partial* to) {
  __shared__ Partial shared[kThreads];
  shared[threadIdx.x] = own;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) Join(shared[threadIdx.x + half], &shared[threadIdx.x]);
  }
  if (threadIdx.x == 0) *to = shared[0];
}

template <typename R, typename X>
__global__ void __launch_bounds__(kThreads) SumsKernel(Pair<R, X> pair, Partial* partials) {
  Partial own = EmptyPartial();
  const int64_t begin = int64_t{blockIdx.x} * kRunsPerBlock;
  const int64_t end = begin + kRunsPerBlock < pair.runs ? begin + kRunsPerBlock : pair.runs;
  for (int64_t run = begin + threadIdx.x; run < end; run += kThreads) {
    pair.ForEachValue(run, [&](int64_t index, auto reference_bits, auto x_bits) {
      const double reference = WidenBits(reference_bits);
      const double x = WidenBits(x_bits);
      bool differs;
      if constexpr (std::is_same_v<R, X>) {
        differs = reference_bits != x_bits;
      } else {
        differs = !(reference == x);
      }
      if (differs) {
        ++own.differing;
        if (index < own.first) own.first = index;
      }
      const double d = reference - x;
      own.difference = __fma_rn(d, d, own.difference);
      own.reference = __fma_rn(reference, reference, own.reference);
      own.x = __fma_rn(x, x, own.x);
      own.product = __fma_rn(reference, x, own.product);
      own.max_abs = fabs(d) > own.max_abs ? fabs(d) : own.max_abs;
      own.max_reference = fabs(reference) > own.max_reference ? fabs(reference) : own.max_reference;
      // A difference is finite only of finite values.
      if (isfinite(d)) return;
      own.nan[0] += isnan(x);
      own.nan[1] += isnan(reference);
      own.infinity[0] += isinf(x) != 0;
      own.infinity[1] += isinf(reference) != 0;
    });
  }
  Fold(own, &partials[blockIdx.x]);
}

__global__ void __launch_bounds__(kThreads)
    JoinKernel(const Partial* partials, int64_t count, Partial* result) {
  Partial own = EmptyPartial();
  for (int64_t i = threadIdx.x; i < count; i += kThreads) Join(partials[i], &own);
  Fold(own, result);
}

// One of the three counts.
struct Count {
  int shift;                            // of the bits that are counted
  int bins;                             // a power of two
  int prefixes;                         // 0: every value is counted, in the first of them
  uint32_t prefix[Device::kMostRanks];  // the bits before
};

constexpr int kCounts = 3;
constexpr int kShifts[kCounts] = {20, 10, 0};
constexpr int kBins[kCounts] = {2048, 1024, 1024};
constexpr int kCounters = 8192;  // in a block: of all prefixes, or copies of the first count
static_assert(kCounters == 1024 * Device::kMostRanks);
constexpr int64_t kMostCountingBlocks = 132 * 6;

template <typename R, typename X>
__global__ void __launch_bounds__(kThreads)
    CountKernel(Pair<R, X> pair, Count count, unsigned long long* counts) {
  __shared__ uint32_t shared[kCounters];
  for (int i = threadIdx.x; i < kCounters; i += kThreads) shared[i] = 0;
  __syncthreads();
  // Several copies of the first count, so that fewer threads wait for one another.
  const int copies = count.prefixes == 0 ? kCounters / count.bins : 1;
  uint32_t* const own = shared + threadIdx.x / 32 % copies * count.bins;
  uint32_t zeros = 0;  // often most of all
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t run = int64_t{blockIdx.x} * kThreads + threadIdx.x; run < pair.runs; run += step) {
    pair.ForEachValue(run, [&](int64_t, auto reference_bits, auto x_bits) {
      const double d = WidenBits(reference_bits) - WidenBits(x_bits);
      const uint32_t bits = __float_as_uint(fabsf(__double2float_rn(d)));
      if (bits == 0) {
        ++zeros;
        return;
      }
      const uint32_t bin = bits >> count.shift & (count.bins - 1);
      if (count.prefixes == 0) {
        atomicAdd(&own[bin], 1u);
        return;
      }
      const uint32_t prefix = bits >> count.shift >> 10;
      for (int i = 0; i < count.prefixes; ++i) {
        if (count.prefix[i] == prefix) atomicAdd(&own[i * count.bins + bin], 1u);
      }
    });
  }
  if (zeros > 0) {
    if (count.prefixes == 0) atomicAdd(&own[0], zeros);
    for (int i = 0; i < count.prefixes; ++i) {
      if (count.prefix[i] == 0) atomicAdd(&own[i * count.bins], zeros);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCounters; i += kThreads) {
    if (shared[i] == 0) continue;
    const int place = count.prefixes == 0 ? i & (count.bins - 1) : i;
    atomicAdd(&counts[place], static_cast<unsigned long long>(shared[i]));
  }
}

int64_t BlocksOf(int64_t runs) { return (runs + kRunsPerBlock - 1) / kRunsPerBlock; }

struct Scratch {
  explicit Scratch(const Tensor& x, absl::Span<uint8_t> memory = {}) : workspace(memory) {
    // As many as either way of numbering the runs gives.
    const int64_t runs = x.batch * x.rows * ((x.width + kValues - 1) / kValues);
    partials = workspace.Take<Partial>(BlocksOf(runs) + 1);
    counts = workspace.Take<unsigned long long>(kCounters);
  }

  cuda::Workspace workspace;
  Partial* partials;
  unsigned long long* counts;
};

template <typename T>
absl::Status ToHost(cudaStream_t stream, const T* device, size_t count, T* host) {
  PLUMBLINE_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
                 "comparison"));
  return CudaStatus(cudaStreamSynchronize(stream), "comparison");
}

template <typename R, typename X>
absl::Status FindRanks(cudaStream_t stream, const Pair<R, X>& pair, absl::Span<const int64_t> ranks,
                       const Scratch& scratch, std::vector<float>* by_rank) {
  struct Wanted {
    uint32_t prefix = 0;
    int64_t rank = 0;  // among the values with this prefix
  };
  std::vector<Wanted> wanted;
  for (const int64_t rank : ranks) wanted.push_back({0, rank});
  std::vector<unsigned long long> counts(kCounters);
  const int64_t blocks = std::min((pair.runs + kThreads - 1) / kThreads, kMostCountingBlocks);
  for (int turn = 0; turn < kCounts; ++turn) {
    Count count = {kShifts[turn], kBins[turn], 0, {}};
    std::map<uint32_t, int> places;
    for (const Wanted& each : wanted) {
      if (turn == 0) break;
      if (places.emplace(each.prefix, count.prefixes).second) {
        count.prefix[count.prefixes++] = each.prefix;
      }
    }
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(
        cudaMemsetAsync(scratch.counts, 0, kCounters * sizeof(counts[0]), stream), "comparison"));
    CountKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(pair, count,
                                                                        scratch.counts);
    PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("comparison"));
    PLUMBLINE_RETURN_IF_ERROR(ToHost(stream, scratch.counts, kCounters, counts.data()));
    for (Wanted& each : wanted) {
      const unsigned long long* const own =
          counts.data() + (turn == 0 ? 0 : places[each.prefix] * count.bins);
      uint32_t bin = 0;
      while (bin + 1 < static_cast<uint32_t>(count.bins) &&
             each.rank >= static_cast<int64_t>(own[bin])) {
        each.rank -= static_cast<int64_t>(own[bin++]);
      }
      each.prefix = turn == 0 ? bin : each.prefix << 10 | bin;
    }
  }
  for (const Wanted& each : wanted) {
    float value;
    std::memcpy(&value, &each.prefix, sizeof(value));
    by_rank->push_back(value);
  }
  return absl::OkStatus();
}

template <typename R, typename X>
absl::StatusOr<TensorDifference> Measure(cudaStream_t stream, const Tensor& reference,
                                         const Tensor& x, absl::Span<const int64_t> ranks,
                                         const Scratch& scratch) {
  TensorDifference result;
  if (x.NumElements() == 0) return result;
  const Pair<R, X> pair(reference, x);
  const int64_t blocks = BlocksOf(pair.runs);
  SumsKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(pair, scratch.partials + 1);
  PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("comparison"));
  JoinKernel<<<1, kThreads, 0, stream>>>(scratch.partials + 1, blocks, scratch.partials);
  PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("comparison"));
  Partial found;
  PLUMBLINE_RETURN_IF_ERROR(ToHost(stream, scratch.partials, 1, &found));
  result.difference_squares = found.difference;
  result.reference_squares = found.reference;
  result.x_squares = found.x;
  result.products = found.product;
  result.max_abs = found.max_abs;
  result.max_reference = found.max_reference;
  result.differing = found.differing;
  if (found.differing > 0) result.first = found.first;
  int64_t nonfinite = 0;
  for (size_t side = 0; side < 2; ++side) {
    result.nan[side] = found.nan[side];
    result.infinity[side] = found.infinity[side];
    nonfinite += found.nan[side] + found.infinity[side];
  }
  if (ranks.empty() || nonfinite > 0 || found.max_abs == 0) return result;
  PLUMBLINE_RETURN_IF_ERROR(FindRanks(stream, pair, ranks, scratch, &result.by_rank));
  return result;
}

template <typename R>
absl::StatusOr<TensorDifference> MeasureFrom(cudaStream_t stream, const Tensor& reference,
                                             const Tensor& x, absl::Span<const int64_t> ranks,
                                             const Scratch& scratch) {
  switch (x.dtype) {
    case DType::kBF16:
      return Measure<R, bf16>(stream, reference, x, ranks, scratch);
    case DType::kF32:
      return Measure<R, float>(stream, reference, x, ranks, scratch);
    default:
      return Measure<R, double>(stream, reference, x, ranks, scratch);
  }
}

bool IsCompared(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

}  // namespace

absl::Status CheckDifference(const Tensor& reference, const Tensor& x,
                             absl::Span<const int64_t> ranks) {
  if (reference.batch != x.batch || reference.rows != x.rows || reference.width != x.width) {
    return absl::InvalidArgumentError(absl::StrCat(
        "(", reference.batch, ", ", reference.rows, ", ", reference.width, ") against (", x.batch,
        ", ", x.rows, ", ", x.width, "): only tensors of one shape are compared"));
  }
  for (const Tensor* side : {&reference, &x}) {
    if (IsCompared(side->dtype)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        DTypeName(side->dtype), " cannot be compared on a GPU; BF16, F32 and F64 can"));
  }
  if (ranks.size() > Device::kMostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat(ranks.size(), " ranks; at most ", Device::kMostRanks));
  }
  for (const int64_t rank : ranks) {
    if (rank >= 0 && rank < x.NumElements()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " of ", x.NumElements(), " values"));
  }
  return absl::OkStatus();
}

size_t DifferenceScratchBytes(const Tensor& x) { return Scratch(x).workspace.bytes(); }

absl::StatusOr<TensorDifference> MeasureDifference(cudaStream_t stream, const Tensor& reference,
                                                   const Tensor& x, absl::Span<const int64_t> ranks,
                                                   void* memory) {
  const Scratch scratch(x,
                        absl::MakeSpan(static_cast<uint8_t*>(memory), DifferenceScratchBytes(x)));
  switch (reference.dtype) {
    case DType::kBF16:
      return MeasureFrom<bf16>(stream, reference, x, ranks, scratch);
    case DType::kF32:
      return MeasureFrom<float>(stream, reference, x, ranks, scratch);
    default:
      return MeasureFrom<double>(stream, reference, x, ranks, scratch);
  }
}

}  // namespace plumbline
