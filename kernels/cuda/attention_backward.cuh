// The backward of fused attention, of every kernel that keeps the logarithm of the softmax's sum.
//
// Shapes: q, k, v, the output and the gradients (batch, R, heads * D) bfloat16, D at most 128.
// Backward of g: delta = sum of g o over the channels, o the bfloat16 output; p = exp(s / sqrt(D))
//   over l; dp = g v; ds from p, dp and delta as ScoreGradient says; dv = sum of round(p) g, dk =
//   sum of ds q, dq = sum of ds k; float32 with one rounding of each.
// Order: s and dp over the channels, 16 at a time as one m16n8k16 instruction each; the sums over
//   queries and over keys likewise in ascending order, filled up with zeros to whole tiles; delta
//   as in row_sum.cuh. No atomics: the gradients of k and v are one kernel, that of q another, and
//   both compute p again. A row's bytes depend on its own values and on all of the other side of
//   its item and head, in their order, and on nothing else.
#ifndef PLUMBLINE_KERNELS_CUDA_ATTENTION_BACKWARD_CUH_
#define PLUMBLINE_KERNELS_CUDA_ATTENTION_BACKWARD_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/row_sum.cuh"
#include "kernels/ops.h"

namespace plumbline::cuda {

// Where ds is rounded; p normalised, dp - delta the gradient of a score before p.
enum class ScoreGradient {
  kScaled,              // round(p (dp - delta) / sqrt(D))
  kUnscaled,            // round(p (dp - delta)); the sums of dq and dk are divided by sqrt(D)
  kFromRoundedWeights,  // round(round(p) (dp - delta) / sqrt(D))
};

namespace attention_backward {

// A block owns kOwn keys (for the gradients of k and v) or queries (for that of q), 16 for each of
// 4 warps, and goes through the other side in tiles of kOther.
inline constexpr int kOwn = 64;
inline constexpr int kOther = 32;
inline constexpr int kThreads = 128;
inline constexpr int kStages = 2;

enum class Owner { kKeys, kQueries };

template <int kWidth>
constexpr int SharedBytes() {
  return (2 * kOwn + kStages * 2 * kOther) * kWidth * static_cast<int>(sizeof(bf16));
}

// delta of every row and head: a warp each.
template <int kTeamWarps>
__global__ void __launch_bounds__(kRowWarps* kWarpSize)
    DeltaKernel(AttentionShape shape, int64_t number_of_rows, View<const bf16> grad,
                View<const bf16> output, float* deltas) {
  using Team = RowTeam<kTeamWarps>;
  const int64_t number = int64_t{blockIdx.x} * Team::kTeamsInBlock + Team::Team();
  if (number >= number_of_rows) return;
  const int64_t row = number % shape.rows;
  const int64_t head = number / shape.rows % shape.heads;
  const int64_t item = number / shape.rows / shape.heads;
  const bf16* const g = grad.Row(row, item) + head * shape.width;
  const bf16* const o = output.Row(row, item) + head * shape.width;
  float sum = 0;
  Team::ForEachRun(shape.width, [&](int first, int count) {
    float gradients[kRowVector], outputs[kRowVector];
    LoadRowRun<false>(g + first, count, gradients);
    LoadRowRun<false>(o + first, count, outputs);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) sum = __fmaf_rn(gradients[i], outputs[i], sum);
  });
  sum = Team::Fold(sum, nullptr);
  if (Team::Thread() == 0) deltas[number] = sum;
}

struct BackwardTensors {
  View<const bf16> q, k, v, grad;
  const float* logarithms;  // what the forward saved
  const float* deltas;
  View<bf16> grad_q, grad_k, grad_v;  // null where not wanted
};

template <int kWidth>
__device__ void StoreGradient(const float (&sums)[kWidth / 8][4], const View<bf16>& to, int item,
                              int64_t first_row, int64_t rows, int64_t first_channel, int width) {
  if (to.data == nullptr) return;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = first_row + half * 8 + lane / 4;
    if (row >= rows) continue;
    bf16* const values = to.Row(row, item) + first_channel;
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int channel = j * 8 + lane % 4 * 2 + i;
        if (channel < width) values[channel] = RoundToBf16(sums[j][2 * half + i]);
      }
    }
  }
}

// Owner::kKeys: own rows are keys, k and v; the others queries, q and g. Owner::kQueries: the other
// way round. Either way s is the product of the first own and the first other, dp of the second
// ones, and ds times the first other is the gradient of the first own.
template <int kWidth, bool kAligned, Owner kOwner, ScoreGradient kScoreGradient>
__global__ void __launch_bounds__(kThreads)
    AttentionBackwardKernel(AttentionShape shape, BackwardTensors tensors) {
  constexpr bool kOwnsKeys = kOwner == Owner::kKeys;
  using OwnTile = HeadTile<kOwn, kWidth, kThreads>;
  using OtherTile = HeadTile<kOther, kWidth, kThreads>;
  extern __shared__ __align__(128) char shared[];
  __shared__ float other_logarithms[kStages][kOther];
  __shared__ float other_deltas[kStages][kOther];
  const View<const bf16>& own_first = kOwnsKeys ? tensors.k : tensors.q;
  const View<const bf16>& own_second = kOwnsKeys ? tensors.v : tensors.grad;
  const View<const bf16>& other_first = kOwnsKeys ? tensors.q : tensors.k;
  const View<const bf16>& other_second = kOwnsKeys ? tensors.grad : tensors.v;
  const int head = blockIdx.y % shape.heads;
  const int item = blockIdx.y / shape.heads;
  const int64_t first_channel = int64_t{head} * shape.width;
  const int64_t first_own = int64_t{blockIdx.x} * kOwn;
  const float* const logarithms = tensors.logarithms + int64_t{blockIdx.y} * shape.rows;
  const float* const deltas = tensors.deltas + int64_t{blockIdx.y} * shape.rows;
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * 16;
  char* const ring = shared + 2 * OwnTile::kBytes;

  const int64_t tiles = (shape.rows + kOther - 1) / kOther;
  const auto load = [&](int64_t tile) {
    if (tile < tiles) {
      const int stage = static_cast<int>(tile % kStages);
      char* const first = ring + stage * 2 * OtherTile::kBytes;
      OtherTile::template Load<kAligned>(other_first.Row(0, item) + first_channel,
                                         other_first.row_stride, tile * kOther, shape.rows,
                                         shape.width, first);
      OtherTile::template Load<kAligned>(other_second.Row(0, item) + first_channel,
                                         other_second.row_stride, tile * kOther, shape.rows,
                                         shape.width, first + OtherTile::kBytes);
      if (kOwnsKeys && threadIdx.x < kOther) {
        // Queries that are none have p = 2^-infinity.
        const int64_t query = tile * kOther + threadIdx.x;
        other_logarithms[stage][threadIdx.x] = query < shape.rows ? logarithms[query] : INFINITY;
        other_deltas[stage][threadIdx.x] = query < shape.rows ? deltas[query] : 0.0f;
      }
    }
    CommitCopies();
  };

  OwnTile::template Load<kAligned>(own_first.Row(0, item) + first_channel, own_first.row_stride,
                                   first_own, shape.rows, shape.width, shared);
  OwnTile::template Load<kAligned>(own_second.Row(0, item) + first_channel, own_second.row_stride,
                                   first_own, shape.rows, shape.width, shared + OwnTile::kBytes);
  load(0);

  // Of a thread's two query rows, where it owns queries.
  float own_logarithms[2] = {INFINITY, INFINITY};
  float own_deltas[2] = {};
  if constexpr (!kOwnsKeys) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t query = first_own + warp_row + half * 8 + lane / 4;
      if (query >= shape.rows) continue;
      own_logarithms[half] = logarithms[query];
      own_deltas[half] = deltas[query];
    }
  }

  const uint32_t own_first_tile = SharedAddress(shared);
  const uint32_t own_second_tile = own_first_tile + OwnTile::kBytes;
  float first_sums[kWidth / 8][4] = {};                   // dk or dq
  float second_sums[kOwnsKeys ? kWidth / 8 : 1][4] = {};  // dv

  for (int64_t tile = 0; tile < tiles; ++tile) {
    WaitForCopies<0>();
    __syncthreads();
    load(tile + 1);
    const int stage = static_cast<int>(tile % kStages);
    const uint32_t other_first_tile = SharedAddress(ring + stage * 2 * OtherTile::kBytes);
    const uint32_t other_second_tile = other_first_tile + OtherTile::kBytes;

    float p[kOther / 8][4] = {};
    float ds[kOther / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kWidth / 16; ++step) {
      uint32_t a[4], c[4];
      OwnTile::LoadLeft(own_first_tile, warp_row, step * 16, a);
      OwnTile::LoadLeft(own_second_tile, warp_row, step * 16, c);
#pragma unroll
      for (int j = 0; j < kOther / 16; ++j) {
        uint32_t b[4];
        OtherTile::LoadRight(other_first_tile, j * 16, step * 16, b);
        MultiplyAccumulate(a, b[0], b[1], p[2 * j]);
        MultiplyAccumulate(a, b[2], b[3], p[2 * j + 1]);
        OtherTile::LoadRight(other_second_tile, j * 16, step * 16, b);
        MultiplyAccumulate(c, b[0], b[1], ds[2 * j]);
        MultiplyAccumulate(c, b[2], b[3], ds[2 * j + 1]);
      }
    }

#pragma unroll
    for (int j = 0; j < kOther / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = j * 8 + lane % 4 * 2 + i % 2;
        const float logarithm = kOwnsKeys ? other_logarithms[stage][column] : own_logarithms[i / 2];
        const float delta = kOwnsKeys ? other_deltas[stage][column] : own_deltas[i / 2];
        float value = Exp2(__fmaf_rn(p[j][i], shape.scale_log2e, -logarithm));
        if (!kOwnsKeys && tile * kOther + column >= shape.rows) value = 0;
        p[j][i] = value;
        if (kScoreGradient == ScoreGradient::kFromRoundedWeights) value = RoundThroughBf16(value);
        ds[j][i] = value * (ds[j][i] - delta);
        if (kScoreGradient != ScoreGradient::kUnscaled) ds[j][i] *= shape.scale;
      }
    }

#pragma unroll
    for (int step = 0; step < kOther / 16; ++step) {
      const auto pack = [&](const float(&values)[kOther / 8][4], uint32_t(&packed)[4]) {
        packed[0] = PackBf16(values[2 * step][0], values[2 * step][1]);
        packed[1] = PackBf16(values[2 * step][2], values[2 * step][3]);
        packed[2] = PackBf16(values[2 * step + 1][0], values[2 * step + 1][1]);
        packed[3] = PackBf16(values[2 * step + 1][2], values[2 * step + 1][3]);
      };
      uint32_t p_packed[4], ds_packed[4];
      pack(p, p_packed);
      pack(ds, ds_packed);
#pragma unroll
      for (int j = 0; j < kWidth / 16; ++j) {
        uint32_t b[4];
        OtherTile::LoadRightOverRows(other_first_tile, step * 16, j * 16, b);
        MultiplyAccumulate(ds_packed, b[0], b[1], first_sums[2 * j]);
        MultiplyAccumulate(ds_packed, b[2], b[3], first_sums[2 * j + 1]);
        if constexpr (kOwnsKeys) {
          OtherTile::LoadRightOverRows(other_second_tile, step * 16, j * 16, b);
          MultiplyAccumulate(p_packed, b[0], b[1], second_sums[2 * j]);
          MultiplyAccumulate(p_packed, b[2], b[3], second_sums[2 * j + 1]);
        }
      }
    }
  }

  if constexpr (kScoreGradient == ScoreGradient::kUnscaled) {
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) first_sums[j][i] *= shape.scale;
    }
  }
  const int64_t first_row = first_own + warp_row;
  StoreGradient<kWidth>(first_sums, kOwnsKeys ? tensors.grad_k : tensors.grad_q, item, first_row,
                        shape.rows, first_channel, shape.width);
  if constexpr (kOwnsKeys) {
    StoreGradient<kWidth>(second_sums, tensors.grad_v, item, first_row, shape.rows, first_channel,
                          shape.width);
  }
}

template <int kWidth, Owner kOwner, ScoreGradient kScoreGradient>
absl::Status Launch(cudaStream_t stream, const AttentionShape& shape, int64_t batch, bool aligned,
                    const BackwardTensors& tensors) {
  const auto kernel = aligned ? AttentionBackwardKernel<kWidth, true, kOwner, kScoreGradient>
                              : AttentionBackwardKernel<kWidth, false, kOwner, kScoreGradient>;
  const absl::Status allowed =
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      SharedBytes<kWidth>()),
                 "Attention backward");
  if (!allowed.ok()) return allowed;
  const dim3 blocks(static_cast<unsigned>((shape.rows + kOwn - 1) / kOwn),
                    static_cast<unsigned>(batch * shape.heads));
  kernel<<<blocks, kThreads, SharedBytes<kWidth>(), stream>>>(shape, tensors);
  return LaunchStatus("Attention backward");
}

template <int kWidth, ScoreGradient kScoreGradient>
absl::Status LaunchBoth(cudaStream_t stream, const AttentionShape& shape, int64_t batch,
                        bool aligned, const BackwardTensors& tensors) {
  absl::Status done = absl::OkStatus();
  if (!tensors.grad_k.IsNull() || !tensors.grad_v.IsNull()) {
    done.Update(
        Launch<kWidth, Owner::kKeys, kScoreGradient>(stream, shape, batch, aligned, tensors));
  }
  if (!tensors.grad_q.IsNull()) {
    done.Update(
        Launch<kWidth, Owner::kQueries, kScoreGradient>(stream, shape, batch, aligned, tensors));
  }
  return done;
}

}  // namespace attention_backward

// Bytes of the scratch that FusedAttentionBackward() wants.
inline size_t FusedAttentionBackwardBytes(const BackwardCall& call) {
  const Tensor& q = call.inputs[0];
  return static_cast<size_t>(q.batch * q.rows * (q.width / call.attributes.head_width)) *
         sizeof(float);
}

// Enqueued. `call.saved` is m / sqrt(D) log2(e) + log2(l) of every (item, head, row), float32: m
// the maximum of the row's scores and l the sum of its exp((s - m) / sqrt(D)).
template <ScoreGradient kScoreGradient>
absl::Status FusedAttentionBackward(cudaStream_t stream, const BackwardCall& call,
                                    float* workspace) {
  namespace parts = attention_backward;
  const Tensor& q = call.inputs[0];
  if (q.NumElements() == 0) return absl::OkStatus();
  const AttentionShape shape(q, call.attributes);
  const int64_t rows = q.batch * shape.heads * shape.rows;
  const parts::BackwardTensors tensors = {View<const bf16>(q),
                                          View<const bf16>(call.inputs[1]),
                                          View<const bf16>(call.inputs[2]),
                                          View<const bf16>(call.grad_output),
                                          static_cast<const float*>(call.saved),
                                          workspace,
                                          View<bf16>(call.grad_inputs[0]),
                                          View<bf16>(call.grad_inputs[1]),
                                          View<bf16>(call.grad_inputs[2])};
  constexpr int kTeamWarps = 1;
  constexpr int kTeams = RowTeam<kTeamWarps>::kTeamsInBlock;
  parts::DeltaKernel<kTeamWarps>
      <<<static_cast<unsigned>((rows + kTeams - 1) / kTeams), kRowWarps * kWarpSize, 0, stream>>>(
          shape, rows, tensors.grad, View<const bf16>(call.output), workspace);
  const absl::Status launched = LaunchStatus("Attention delta");
  if (!launched.ok()) return launched;
  const bool aligned = AreAligned(kChunk, q, call.inputs[1], call.inputs[2], call.grad_output) &&
                       shape.width % kChunk == 0;
  return shape.width <= 64
             ? parts::LaunchBoth<64, kScoreGradient>(stream, shape, q.batch, aligned, tensors)
             : parts::LaunchBoth<128, kScoreGradient>(stream, shape, q.batch, aligned, tensors);
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ATTENTION_BACKWARD_CUH_
