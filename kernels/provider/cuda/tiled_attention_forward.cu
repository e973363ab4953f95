#include <cuda_runtime.h>

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/cuda_status.h"
#include "kernels/provider/cuda/tiled_attention.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::AttentionShape;
using cuda::bf16;
using cuda::Exp2;
using cuda::HeadTile;
using cuda::kChunk;
using cuda::View;

constexpr int kQueries = 128;  // of a block: 16 for each of 8 warps
constexpr int kThreads = 256;

// One tile of keys and one of values, so that cards with 99 KiB of shared memory have room for 128
// keys: the next keys are on their way while the values are used, and the other way round.
template <int kWidth, int kKeys>
constexpr int SharedBytes() {
  return (kQueries + 2 * kKeys) * kWidth * static_cast<int>(sizeof(bf16));
}

template <int kWidth, int kKeys, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    TiledAttentionKernel(AttentionShape shape, View<const bf16> q, View<const bf16> k,
                         View<const bf16> v, float* saved, View<bf16> output) {
  using QueryTile = HeadTile<kQueries, kWidth, kThreads>;
  using KeyTile = HeadTile<kKeys, kWidth, kThreads>;
  extern __shared__ __align__(128) char shared[];
  const int head = blockIdx.y % shape.heads;
  const int item = blockIdx.y / shape.heads;
  const int64_t first_channel = int64_t{head} * shape.width;
  const int64_t first_query = int64_t{blockIdx.x} * kQueries;
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * 16;
  char* const key_tile = shared + QueryTile::kBytes;
  char* const value_tile = key_tile + KeyTile::kBytes;
  const uint32_t keys = cuda::SharedAddress(key_tile);
  const uint32_t values = cuda::SharedAddress(value_tile);

  const int64_t tiles = (shape.rows + kKeys - 1) / kKeys;
  const auto load = [&](const View<const bf16>& from, int64_t tile, char* to) {
    if (tile < tiles) {
      KeyTile::template Load<kAligned>(from.Row(0, item) + first_channel, from.row_stride,
                                       tile * kKeys, shape.rows, shape.width, to);
    }
    cuda::CommitCopies();
  };

  QueryTile::template Load<kAligned>(q.Row(0, item) + first_channel, q.row_stride, first_query,
                                     shape.rows, shape.width, shared);
  load(k, 0, key_tile);

  // A thread's values belong to two query rows, lane / 4 and that + 8 of the warp's 16.
  uint32_t queries[kWidth / 16][4];
  float sums[kWidth / 8][4] = {};
  float maxima[2] = {-INFINITY, -INFINITY};
  float denominators[2] = {};

  for (int64_t tile = 0; tile < tiles; ++tile) {
    cuda::WaitForCopies<0>();
    __syncthreads();
    load(v, tile, value_tile);
    if (tile == 0) {
#pragma unroll
      for (int step = 0; step < kWidth / 16; ++step) {
        QueryTile::LoadLeft(cuda::SharedAddress(shared), warp_row, step * 16, queries[step]);
      }
    }

    float scores[kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kWidth / 16; ++step) {
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        uint32_t b[4];
        KeyTile::LoadRight(keys, j * 16, step * 16, b);
        cuda::MultiplyAccumulate(queries[step], b[0], b[1], scores[2 * j]);
        cuda::MultiplyAccumulate(queries[step], b[2], b[3], scores[2 * j + 1]);
      }
    }
    if ((tile + 1) * kKeys > shape.rows) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int64_t key = tile * kKeys + j * 8 + lane % 4 * 2 + i % 2;
          if (key >= shape.rows) scores[j][i] = -INFINITY;
        }
      }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float maximum = maxima[half];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        maximum = fmaxf(maximum, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
      }
      maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFF, maximum, 1));
      maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFF, maximum, 2));
      const float shrink = Exp2((maxima[half] - maximum) * shape.scale_log2e);
      const float shift = -maximum * shape.scale_log2e;
      maxima[half] = maximum;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[j][i] = Exp2(__fmaf_rn(scores[j][i], shape.scale_log2e, shift));
          sum += scores[j][i];
        }
      }
      denominators[half] = __fmaf_rn(denominators[half], shrink, sum);
#pragma unroll
      for (int j = 0; j < kWidth / 8; ++j) {
        sums[j][2 * half] *= shrink;
        sums[j][2 * half + 1] *= shrink;
      }
    }

    cuda::WaitForCopies<0>();
    __syncthreads();
    load(k, tile + 1, key_tile);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      const uint32_t p[4] = {cuda::PackBf16(scores[2 * step][0], scores[2 * step][1]),
                             cuda::PackBf16(scores[2 * step][2], scores[2 * step][3]),
                             cuda::PackBf16(scores[2 * step + 1][0], scores[2 * step + 1][1]),
                             cuda::PackBf16(scores[2 * step + 1][2], scores[2 * step + 1][3])};
#pragma unroll
      for (int j = 0; j < kWidth / 16; ++j) {
        uint32_t b[4];
        KeyTile::LoadRightOverRows(values, step * 16, j * 16, b);
        cuda::MultiplyAccumulate(p, b[0], b[1], sums[2 * j]);
        cuda::MultiplyAccumulate(p, b[2], b[3], sums[2 * j + 1]);
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float denominator = denominators[half];
    denominator += __shfl_xor_sync(0xFFFFFFFF, denominator, 1);
    denominator += __shfl_xor_sync(0xFFFFFFFF, denominator, 2);
    const int64_t row = first_query + warp_row + half * 8 + lane / 4;
    if (row >= shape.rows) continue;
    if (saved != nullptr && lane % 4 == 0) {
      saved[int64_t{blockIdx.y} * shape.rows + row] =
          maxima[half] * shape.scale_log2e + log2f(denominator);
    }
    bf16* const to = output.Row(row, item) + first_channel;
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int channel = j * 8 + lane % 4 * 2 + i;
        if (channel < shape.width) {
          to[channel] = cuda::RoundToBf16(sums[j][2 * half + i] / denominator);
        }
      }
    }
  }
}

template <int kWidth, int kKeys>
absl::Status Launch(cudaStream_t stream, const ForwardCall& call) {
  const Tensor& q = call.inputs[0];
  const AttentionShape shape(q, call.attributes);
  const bool aligned =
      cuda::AreAligned(kChunk, q, call.inputs[1], call.inputs[2]) && shape.width % kChunk == 0;
  const auto kernel = aligned ? TiledAttentionKernel<kWidth, kKeys, true>
                              : TiledAttentionKernel<kWidth, kKeys, false>;
  constexpr int kBytes = SharedBytes<kWidth, kKeys>();
  const absl::Status allowed =
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
                 "provider Attention");
  if (!allowed.ok()) return allowed;
  const dim3 blocks(static_cast<unsigned>((q.rows + kQueries - 1) / kQueries),
                    static_cast<unsigned>(q.batch * shape.heads));
  kernel<<<blocks, kThreads, kBytes, stream>>>(
      shape, View<const bf16>(q), View<const bf16>(call.inputs[1]),
      View<const bf16>(call.inputs[2]), static_cast<float*>(call.saved), View<bf16>(call.output));
  return LaunchStatus("provider Attention");
}

template <int kKeys>
absl::Status LaunchWidth(cudaStream_t stream, const ForwardCall& call) {
  return call.attributes.head_width <= 64 ? Launch<64, kKeys>(stream, call)
                                          : Launch<128, kKeys>(stream, call);
}

}  // namespace

absl::Status TiledAttentionForward(cudaStream_t stream, TiledKernel kernel,
                                   const ForwardCall& call) {
  if (call.inputs[0].NumElements() == 0) return absl::OkStatus();
  switch (kernel) {
    case TiledKernel::kDefault:
      return LaunchWidth<128>(stream, call);
    case TiledKernel::kFlash:
      return LaunchWidth<64>(stream, call);
    case TiledKernel::kEfficient:
      return LaunchWidth<32>(stream, call);
  }
  return absl::InternalError("provider Attention: unknown kernel");
}

}  // namespace plumbline::provider_cuda
