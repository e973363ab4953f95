// Sums: float64, a term and its addition by one fma. Runs of 8 neighbouring values of a row (a
// dense tensor is one row) are numbered through; thread t of block b of B takes runs
// 256 b + t + 256 B k, k ascending, onto sums of its own. Then 256 sums are folded in halves,
// t += t + 128, + 64, ...; and so are, in one block, those of all blocks, of which thread t first
// takes numbers t, t + 256, ... B and with it the order depend on the shape and on whether both
// sides are dense.
//
// Ranks: the bits of non-negative floats are in the order of their values. Three counts, of the
// upper 11 bits, of the next 10 and of the last 10 where the bits before are those of a wanted
// rank, find the value of each rank exactly. The first count is taken along with the sums, so that
// both tensors are read three times in all.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/difference.h"
#include "kernels/cuda/rank_search.h"
#include "kernels/cuda/value_pairs.cuh"
#include "kernels/cuda/workspace.h"
#include "kernels/device.h"

namespace plumbline {
namespace {

using cuda::bf16;
using cuda::Double;
using cuda::ValuePairs;

constexpr int kThreads = 256;
// A fixed number, since the order of the sums depends on it: twelve for each multiprocessor of the
// largest Hopper card, which is whole turns of two, three, four or six at once.
constexpr int64_t kMostBlocks = 132 * 12;

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

// One of the three counts: of values by some of their bits.
constexpr int kCounts = 3;
constexpr int kFirstShift = 20;
constexpr int kShifts[kCounts] = {kFirstShift, 10, 0};
constexpr int kFirstBins = 2048;
constexpr int kBins = 1 << RankSearch::kBits;  // of the other counts, for each prefix
constexpr int kCounters = kBins * static_cast<int>(Device::kMostRanks);
static_assert(kFirstBins <= kCounters);

// Adds a block's counts to those of all blocks.
__device__ void AddCounts(const uint32_t* own, int bins, unsigned long long* counts) {
  for (int i = threadIdx.x; i < bins; i += kThreads) {
    if (own[i] > 0) atomicAdd(&counts[i], static_cast<unsigned long long>(own[i]));
  }
}

// kWithCounts: also the first count, into `counts`.
template <bool kWithCounts, typename R, typename X>
__global__ void __launch_bounds__(kThreads)
    SumsKernel(ValuePairs<R, X> pairs, Partial* partials, unsigned long long* counts) {
  using Pairs = ValuePairs<R, X>;
  __shared__ uint32_t bins[kWithCounts ? kFirstBins : 1];
  // NaN and infinity of x, then of the reference; rare, so they take no registers.
  __shared__ uint32_t special[2][2];
  if constexpr (kWithCounts) {
    for (int i = threadIdx.x; i < kFirstBins; i += kThreads) bins[i] = 0;
  }
  if (threadIdx.x < 4) special[threadIdx.x / 2][threadIdx.x % 2] = 0;
  __syncthreads();
  double difference = 0, reference_squares = 0, x_squares = 0, product = 0, max_abs = 0;
  std::conditional_t<sizeof(R) <= 4, float, double> max_reference = 0;
  uint32_t differing = 0, zeros = 0;
  int64_t first = INT64_MAX;
  cuda::ForEachOwnRun<2>(pairs, [&](int64_t number, const typename Pairs::Run& run) {
    uint32_t differing_here = 0;
#pragma unroll
    for (int i = 0; i < Pairs::kRun; ++i) {
      const auto reference_bits = run.reference.values[i];
      const auto x_bits = run.x.values[i];
      const double reference = Double(reference_bits);
      const double x = Double(x_bits);
      differing_here += Pairs::Differ(reference_bits, x_bits);
      const double d = reference - x;
      difference = __fma_rn(d, d, difference);
      reference_squares = __fma_rn(reference, reference, reference_squares);
      x_squares = __fma_rn(x, x, x_squares);
      product = __fma_rn(reference, x, product);
      max_abs = fabs(d) > max_abs ? fabs(d) : max_abs;
      if constexpr (sizeof(R) <= 4) {
        max_reference = fmaxf(max_reference, fabsf(cuda::Single(reference_bits)));
      } else {
        max_reference = fabs(reference) > max_reference ? fabs(reference) : max_reference;
      }
      if constexpr (kWithCounts) {
        const uint32_t bits = Pairs::DifferenceBits(reference_bits, x_bits);
        if (bits == 0) {
          ++zeros;  // often most of all
        } else {
          atomicAdd(&bins[bits >> kFirstShift], 1u);
        }
      }
    }
    if constexpr (kWithCounts) zeros -= Pairs::kRun - run.count;
    if (differing_here > 0) {
      differing += differing_here;
      if (first == INT64_MAX) {
        int place = Pairs::kRun;
#pragma unroll
        for (int i = Pairs::kRun - 1; i >= 0; --i) {
          if (Pairs::Differ(run.reference.values[i], run.x.values[i])) place = i;
        }
        first = pairs.Index(number) + place;
      }
    }
    // Every value that is not finite spoils this sum, and all that comes after is looked at.
    if (isfinite(difference)) return;
#pragma unroll
    for (int i = 0; i < Pairs::kRun; ++i) {
      const double sides[2] = {Double(run.x.values[i]), Double(run.reference.values[i])};
      for (int side = 0; side < 2; ++side) {
        if (isnan(sides[side])) atomicAdd(&special[side][0], 1u);
        if (isinf(sides[side])) atomicAdd(&special[side][1], 1u);
      }
    }
  });
  if constexpr (kWithCounts) {
    if (zeros > 0) atomicAdd(&bins[0], zeros);
  }
  Partial own = EmptyPartial();
  own.difference = difference;
  own.reference = reference_squares;
  own.x = x_squares;
  own.product = product;
  own.max_abs = max_abs;
  own.max_reference = max_reference;
  own.differing = differing;
  own.first = first;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int side = 0; side < 2; ++side) {
      own.nan[side] = special[side][0];
      own.infinity[side] = special[side][1];
    }
  }
  if constexpr (kWithCounts) AddCounts(bins, kFirstBins, counts);
  Fold(own, &partials[blockIdx.x]);
}

__global__ void __launch_bounds__(kThreads)
    JoinKernel(const Partial* partials, int64_t count, Partial* result) {
  Partial own = EmptyPartial();
  for (int64_t i = threadIdx.x; i < count; i += kThreads) Join(partials[i], &own);
  Fold(own, result);
}

// The bits before those that are counted, of each wanted rank; kNone: no more.
template <int kMost>
struct Prefixes {
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  uint32_t values[kMost];
};

// Counts values with one of the prefixes by RankSearch::kBits of their bits.
template <int kMost, typename R, typename X>
__global__ void __launch_bounds__(kThreads)
    CountKernel(ValuePairs<R, X> pairs, int shift, Prefixes<kMost> prefixes,
                unsigned long long* counts) {
  using Pairs = ValuePairs<R, X>;
  __shared__ uint32_t bins[kMost * kBins];
  for (int i = threadIdx.x; i < kMost * kBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  uint32_t zeros = 0;
  cuda::ForEachOwnRun<2>(pairs, [&](int64_t, const typename Pairs::Run& run) {
#pragma unroll
    for (int i = 0; i < Pairs::kRun; ++i) {
      const uint32_t bits = Pairs::DifferenceBits(run.reference.values[i], run.x.values[i]);
      if (bits == 0) {
        ++zeros;
        continue;
      }
      const uint32_t prefix = bits >> shift >> RankSearch::kBits;
      int place = -1;
#pragma unroll
      for (int p = 0; p < kMost; ++p) place = prefix == prefixes.values[p] ? p : place;
      if (place >= 0) atomicAdd(&bins[place * kBins + (bits >> shift & (kBins - 1))], 1u);
    }
    zeros -= Pairs::kRun - run.count;
  });
  if (zeros > 0) {
    for (int p = 0; p < kMost; ++p) {
      if (prefixes.values[p] == 0) atomicAdd(&bins[p * kBins], zeros);
    }
  }
  __syncthreads();
  AddCounts(bins, kMost * kBins, counts);
}

unsigned BlocksOf(int64_t runs) {
  return static_cast<unsigned>(std::min((runs + kThreads - 1) / kThreads, kMostBlocks));
}

struct Scratch {
  explicit Scratch(absl::Span<uint8_t> memory = {}) : workspace(memory) {
    result = workspace.Take<Partial>(1);
    partials = workspace.Take<Partial>(kMostBlocks);
    counts = workspace.Take<unsigned long long>(kCounters);
  }

  cuda::Workspace workspace;
  Partial* result;
  Partial* partials;
  unsigned long long* counts;
};

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "comparison"); }

template <typename T>
absl::Status ToHost(cudaStream_t stream, const T* device, size_t count, T* host) {
  return Enqueued(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
}

template <int kMost, typename R, typename X>
absl::Status EnqueueCount(cudaStream_t stream, const ValuePairs<R, X>& pairs, int shift,
                          const std::vector<uint32_t>& wanted, unsigned long long* counts) {
  Prefixes<kMost> prefixes;
  for (int i = 0; i < kMost; ++i) {
    prefixes.values[i] = i < static_cast<int>(wanted.size()) ? wanted[i] : prefixes.kNone;
  }
  PLUMBLINE_RETURN_IF_ERROR(
      Enqueued(cudaMemsetAsync(counts, 0, kMost * kBins * sizeof(*counts), stream)));
  CountKernel<kMost>
      <<<BlocksOf(pairs.runs()), kThreads, 0, stream>>>(pairs, shift, prefixes, counts);
  return LaunchStatus("comparison");
}

// The other counts, after the first.
template <typename R, typename X>
absl::Status FinishRanks(cudaStream_t stream, const ValuePairs<R, X>& pairs, const Scratch& scratch,
                         RankSearch* search) {
  RankSearch::Counts counts(kCounters);
  for (int turn = 1; turn < kCounts; ++turn) {
    // Of four percentiles, each between two ranks, there are seldom more than four.
    constexpr int kFew = 4;
    const std::vector<uint32_t> wanted = search->Prefixes();
    const auto enqueue =
        wanted.size() <= kFew ? EnqueueCount<kFew, R, X> : EnqueueCount<Device::kMostRanks, R, X>;
    PLUMBLINE_RETURN_IF_ERROR(enqueue(stream, pairs, kShifts[turn], wanted, scratch.counts));
    PLUMBLINE_RETURN_IF_ERROR(ToHost(stream, scratch.counts, wanted.size() * kBins, counts.data()));
    PLUMBLINE_RETURN_IF_ERROR(Enqueued(cudaStreamSynchronize(stream)));
    search->Narrow(counts, kBins);
  }
  return absl::OkStatus();
}

template <typename R, typename X>
absl::StatusOr<TensorDifference> Measure(cudaStream_t stream, const Tensor& reference,
                                         const Tensor& x, absl::Span<const int64_t> ranks,
                                         const Scratch& scratch) {
  TensorDifference result;
  if (x.NumElements() == 0) return result;
  const ValuePairs<R, X> pairs(reference, x);
  const unsigned blocks = BlocksOf(pairs.runs());
  Partial found;
  RankSearch::Counts counts(ranks.empty() ? 0 : kFirstBins);
  PLUMBLINE_RETURN_IF_ERROR(Enqueued(
      cudaMemsetAsync(scratch.counts, 0, counts.size() * sizeof(*scratch.counts), stream)));
  const auto sums = ranks.empty() ? SumsKernel<false, R, X> : SumsKernel<true, R, X>;
  sums<<<blocks, kThreads, 0, stream>>>(pairs, scratch.partials, scratch.counts);
  PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("comparison"));
  JoinKernel<<<1, kThreads, 0, stream>>>(scratch.partials, blocks, scratch.result);
  PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("comparison"));
  PLUMBLINE_RETURN_IF_ERROR(ToHost(stream, scratch.result, 1, &found));
  PLUMBLINE_RETURN_IF_ERROR(ToHost(stream, scratch.counts, counts.size(), counts.data()));
  PLUMBLINE_RETURN_IF_ERROR(Enqueued(cudaStreamSynchronize(stream)));
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
  RankSearch search(ranks);
  search.Narrow(counts, kFirstBins);
  PLUMBLINE_RETURN_IF_ERROR(FinishRanks(stream, pairs, scratch, &search));
  result.by_rank = search.Values();
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

size_t DifferenceScratchBytes() { return Scratch().workspace.bytes(); }

absl::StatusOr<TensorDifference> MeasureDifference(cudaStream_t stream, const Tensor& reference,
                                                   const Tensor& x, absl::Span<const int64_t> ranks,
                                                   void* memory) {
  const Scratch scratch(absl::MakeSpan(static_cast<uint8_t*>(memory), DifferenceScratchBytes()));
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
