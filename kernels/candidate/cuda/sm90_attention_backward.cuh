// The backward of attention on Hopper: kernels/candidate/cuda/attention.h says what it computes and
// in which order. Two kernels, neither with atomics: one owns keys and goes through the queries for
// the gradients of k and v, the other owns queries and goes through the keys for that of q. Both
// compute the scores and the softmax's weights again. One block a multiprocessor, which goes
// through (item, head, tile) one after another; one warp brings tiles with the copy engine, two
// warpgroups own 64 rows each.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_BACKWARD_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_BACKWARD_CUH_

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace plumbline::candidate_cuda::sm90 {

using cuda::bf16;
namespace ptx = cuda::ptx;

// Whose gradients a kernel computes, and so whose rows a block owns.
enum class Owner { kKeys, kQueries };

// kOverlaps: whether a warpgroup starts a tile's scores while the sums of the tile before are still
// under way, which takes more registers.
template <Owner kOwnerArgument, int kWidthArgument, int kOthersArgument, bool kOverlapsArgument>
struct BackwardTiles {
  static constexpr Owner kOwner = kOwnerArgument;
  static constexpr bool kOwnsKeys = kOwner == Owner::kKeys;
  static constexpr int kWidth = kWidthArgument;    // D
  static constexpr int kOwn = 128;                 // rows of a block
  static constexpr int kOthers = kOthersArgument;  // rows of a tile of the other side
  static constexpr bool kOverlaps = kOverlapsArgument;
  static constexpr int kStages = 2;
  static constexpr int kThreads = 384;
  static constexpr int kBoxes = kWidth / 64;
  static constexpr int kOwnBoxBytes = kOwn * 128;
  static constexpr int kOwnBytes = kBoxes * kOwnBoxBytes;
  static constexpr int kOtherBoxBytes = kOthers * 128;
  static constexpr int kOtherBytes = kBoxes * kOtherBoxBytes;
  // Of the other side where it is queries: logarithms and deltas.
  static constexpr int kRowBytes = kOwnsKeys ? kOthers * 4 : 0;
  static constexpr int kStageBytes = 2 * kOtherBytes + 2 * kRowBytes;
  static constexpr int kSharedBytes =
      1024 + 2 * kOwnBytes + kStages * (2 * kOtherBytes + 2 * kRowBytes);
  static_assert(kOtherBoxBytes % 1024 == 0 && kOthers % 16 == 0);
  static_assert(kSharedBytes <= 227 * 1024);
};

// `logarithms` (what the forward saved) and `deltas` are (items * heads, padded_rows); beyond
// `rows` logarithms are infinite, so that queries that are none have no weight, and deltas zero.
struct BackwardProblem {
  int rows;
  int padded_rows;
  int heads;
  int items;
  int own_tiles;
  float scale;
  float scale_log2e;
  const float* logarithms;
  const float* deltas;
  // kKeys: of k and v; kQueries: of q. Null where not wanted.
  cuda::View<bf16> first_gradient;
  cuda::View<bf16> second_gradient;
};

// Writes the 64 rows of a warpgroup.
template <int kWidth>
__device__ void StoreGradient(const float (&sums)[kWidth / 2], const cuda::View<bf16>& to, int item,
                              int head, int first_row, int rows) {
  if (to.data == nullptr) return;
  const int warp = threadIdx.x % 128 / 32;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + warp * 16 + half * 8 + lane / 4;
    if (row >= rows) continue;
    bf16* const values = to.Row(row, item) + head * kWidth + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j) {
      *reinterpret_cast<uint32_t*>(values + j * 8) =
          cuda::PackBf16(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
    }
  }
}

// kKeys: own are k and v, the others q and g. kQueries: own are q and g, the others k and v. Either
// way the scores are the first own times the first others, dp the second ones, and ds times the
// first others is the first own's gradient.
template <typename Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    AttentionBackwardKernel(const __grid_constant__ CUtensorMap first_own_map,
                            const __grid_constant__ CUtensorMap second_own_map,
                            const __grid_constant__ CUtensorMap first_other_map,
                            const __grid_constant__ CUtensorMap second_other_map,
                            BackwardProblem problem) {
  constexpr bool kOwnsKeys = Tiles::kOwnsKeys;
  constexpr int kOthers = Tiles::kOthers;
  constexpr int kWidth = Tiles::kWidth;
  constexpr int kStages = Tiles::kStages;
  constexpr int kConsumerWarps = 8;
  extern __shared__ char shared_memory[];
  __shared__ __align__(8) uint64_t barriers[2 + 2 * kStages];

  const uint32_t first_own = (cuda::SharedAddress(shared_memory) + 1023) & ~1023u;
  const uint32_t second_own = first_own + Tiles::kOwnBytes;
  const auto first_others = [&](int stage) {
    return second_own + Tiles::kOwnBytes + stage * 2 * Tiles::kOtherBytes;
  };
  const auto second_others = [&](int stage) { return first_others(stage) + Tiles::kOtherBytes; };
  const auto logarithms_at = [&](int stage) {
    return first_others(kStages) + stage * 2 * Tiles::kRowBytes;
  };
  const uint32_t own_full = cuda::SharedAddress(barriers);
  const uint32_t own_empty = own_full + 8;
  const auto full = [&](int stage) { return own_full + 16 + 8 * stage; };
  const auto empty = [&](int stage) { return own_full + 16 + 8 * (kStages + stage); };

  cuda::LetNextKernelStart();
  if (threadIdx.x == 0) {
    ptx::PrefetchTensorMap(&first_own_map);
    ptx::PrefetchTensorMap(&second_own_map);
    ptx::PrefetchTensorMap(&first_other_map);
    ptx::PrefetchTensorMap(&second_other_map);
    ptx::InitBarrier(own_full, 1);
    ptx::InitBarrier(own_empty, kConsumerWarps);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::InitBarrier(full(stage), 1);
      ptx::InitBarrier(empty(stage), kConsumerWarps);
    }
    ptx::FenceBarrierInit();
  }
  __syncthreads();
  cuda::WaitForKernelsBefore();

  const int tiles = (problem.rows + kOthers - 1) / kOthers;
  const int works = problem.items * problem.heads * problem.own_tiles;
  const auto head_of = [&](int number) { return number / problem.own_tiles % problem.heads; };
  const auto item_of = [&](int number) { return number / problem.own_tiles / problem.heads; };
  const auto first_row_of = [&](int number) { return number % problem.own_tiles * Tiles::kOwn; };

  if (threadIdx.x < 128) {
    ptx::ReleaseRegisters<24>();
    if (threadIdx.x == 0) {
      int stage = 0;
      int parity = 1;
      int turn = 0;
      for (int number = blockIdx.x; number < works; number += gridDim.x, ++turn) {
        const int head = head_of(number);
        const int item = item_of(number);
        ptx::Wait(own_empty, turn % 2 ^ 1);
        ptx::ArriveExpecting(own_full, 2 * Tiles::kOwnBytes);
        for (int box = 0; box < Tiles::kBoxes; ++box) {
          ptx::LoadBox4(&first_own_map, own_full, first_own + box * Tiles::kOwnBoxBytes, box * 64,
                        first_row_of(number), head, item);
          ptx::LoadBox4(&second_own_map, own_full, second_own + box * Tiles::kOwnBoxBytes, box * 64,
                        first_row_of(number), head, item);
        }
        const int64_t first_padded = (int64_t{item} * problem.heads + head) * problem.padded_rows;
        for (int tile = 0; tile < tiles; ++tile) {
          ptx::Wait(empty(stage), parity);
          ptx::ArriveExpecting(full(stage), Tiles::kStageBytes);
          for (int box = 0; box < Tiles::kBoxes; ++box) {
            ptx::LoadBox4(&first_other_map, full(stage),
                          first_others(stage) + box * Tiles::kOtherBoxBytes, box * 64,
                          tile * kOthers, head, item);
            ptx::LoadBox4(&second_other_map, full(stage),
                          second_others(stage) + box * Tiles::kOtherBoxBytes, box * 64,
                          tile * kOthers, head, item);
          }
          if constexpr (kOwnsKeys) {
            ptx::LoadBytes(problem.logarithms + first_padded + tile * kOthers, full(stage),
                           logarithms_at(stage), Tiles::kRowBytes);
            ptx::LoadBytes(problem.deltas + first_padded + tile * kOthers, full(stage),
                           logarithms_at(stage) + Tiles::kRowBytes, Tiles::kRowBytes);
          }
          if (++stage == kStages) {
            stage = 0;
            parity ^= 1;
          }
        }
      }
    }
  } else {
    ptx::TakeRegisters<240>();
    const int group = threadIdx.x / 128 - 1;
    const int warp = threadIdx.x % 128 / 32;
    const int lane = threadIdx.x % 32;
    const uint32_t own_offset = group * 64 * 128;
    const auto release = [&](uint32_t barrier) {
      if (lane == 0) ptx::Arrive(barrier);
    };

    int stage = 0;
    int parity = 0;
    int turn = 0;
    for (int number = blockIdx.x; number < works; number += gridDim.x, ++turn) {
      const int head = head_of(number);
      const int item = item_of(number);
      const int first_row = first_row_of(number) + group * 64;

      float scores[kOthers / 2];
      float products[kOthers / 2];  // dp
      uint32_t weights[kOwnsKeys ? kOthers / 4 : 1];
      uint32_t score_gradients[kOthers / 4];
      float first_sums[kWidth / 2];                   // dk or dq
      float second_sums[kOwnsKeys ? kWidth / 2 : 1];  // dv
#pragma unroll
      for (int i = 0; i < kWidth / 2; ++i) first_sums[i] = 0;
      if constexpr (kOwnsKeys) {
#pragma unroll
        for (int i = 0; i < kWidth / 2; ++i) second_sums[i] = 0;
      }

      // Of this thread's two queries, where it owns queries.
      float own_logarithms[2] = {};
      float own_deltas[2] = {};
      if constexpr (!kOwnsKeys) {
        const int64_t first_padded = (int64_t{item} * problem.heads + head) * problem.padded_rows;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int64_t row = first_padded + first_row + warp * 16 + half * 8 + lane / 4;
          own_logarithms[half] = problem.logarithms[row];
          own_deltas[half] = problem.deltas[row];
        }
      }

      // Starts to(64, kOthers) = own others^T over the channels.
      const auto start_product = [&](float(&to)[kOthers / 2], uint32_t own, uint32_t others) {
#pragma unroll
        for (int step = 0; step < kWidth / 16; ++step) {
          const int box = step / 4;
          const int within = step % 4 * 32;
          ptx::Product<kOthers>::template Shared<ptx::Major::kK, ptx::Major::kK>(
              to,
              ptx::Describe<ptx::Major::kK>(own + own_offset + box * Tiles::kOwnBoxBytes + within),
              ptx::Describe<ptx::Major::kK>(others + box * Tiles::kOtherBoxBytes + within),
              step > 0);
        }
      };
      // Starts to(64, kWidth) += left others over the others.
      const auto start_sum = [&](float(&to)[kWidth / 2], const uint32_t(&left)[kOthers / 4],
                                 uint32_t others) {
#pragma unroll
        for (int step = 0; step < kOthers / 16; ++step) {
          ptx::Product<kWidth>::template Registers<ptx::Major::kMn>(
              to, left + 4 * step,
              ptx::Describe<ptx::Major::kMn>(others + step * 2048, Tiles::kOtherBoxBytes), true);
        }
      };

      ptx::Wait(own_full, turn % 2);
      int stage_before = 0;
      for (int tile = 0; tile < tiles; ++tile) {
        ptx::Wait(full(stage), parity);
        ptx::Pin(scores);
        ptx::Pin(products);
        ptx::FenceProducts();
        start_product(scores, first_own, first_others(stage));
        ptx::CommitProducts();
        start_product(products, second_own, second_others(stage));
        ptx::CommitProducts();
        ptx::WaitForProducts<1>();
        // Here the sums of the tile before are complete too.
        ptx::Pin(scores);
        if (Tiles::kOverlaps && tile > 0) release(empty(stage_before));
        if (!kOwnsKeys && (tile + 1) * kOthers > problem.rows) {
#pragma unroll
          for (int i = 0; i < kOthers / 2; ++i) {
            const int key = tile * kOthers + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (key >= problem.rows) scores[i] = -INFINITY;
          }
        }
        const uint32_t row_values = logarithms_at(stage) + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < kOthers / 8; ++j) {
          float column_logarithms[2];
          if constexpr (kOwnsKeys) ptx::LoadPair(row_values + j * 32, column_logarithms);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float logarithm = kOwnsKeys ? column_logarithms[i % 2] : own_logarithms[i / 2];
            scores[4 * j + i] =
                cuda::Exp2(__fmaf_rn(scores[4 * j + i], problem.scale_log2e, -logarithm));
          }
          if constexpr (kOwnsKeys) {
            weights[2 * j] = cuda::PackBf16(scores[4 * j], scores[4 * j + 1]);
            weights[2 * j + 1] = cuda::PackBf16(scores[4 * j + 2], scores[4 * j + 3]);
          }
        }
        ptx::WaitForProducts<0>();
        ptx::Pin(products);
#pragma unroll
        for (int j = 0; j < kOthers / 8; ++j) {
          float column_deltas[2];
          if constexpr (kOwnsKeys) {
            ptx::LoadPair(row_values + Tiles::kRowBytes + j * 32, column_deltas);
          }
          float ds[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float delta = kOwnsKeys ? column_deltas[i % 2] : own_deltas[i / 2];
            ds[i] = scores[4 * j + i] * (products[4 * j + i] - delta) * problem.scale;
          }
          score_gradients[2 * j] = cuda::PackBf16(ds[0], ds[1]);
          score_gradients[2 * j + 1] = cuda::PackBf16(ds[2], ds[3]);
        }
        ptx::Pin(first_sums);
        if constexpr (kOwnsKeys) ptx::Pin(second_sums);
        ptx::FenceProducts();
        if constexpr (kOwnsKeys) start_sum(second_sums, weights, second_others(stage));
        start_sum(first_sums, score_gradients, first_others(stage));
        ptx::CommitProducts();
        if constexpr (!Tiles::kOverlaps) {
          ptx::WaitForProducts<0>();
          ptx::Pin(first_sums);
          if constexpr (kOwnsKeys) ptx::Pin(second_sums);
          release(empty(stage));
        }
        stage_before = stage;
        if (++stage == kStages) {
          stage = 0;
          parity ^= 1;
        }
      }
      ptx::WaitForProducts<0>();
      ptx::Pin(first_sums);
      if constexpr (Tiles::kOverlaps) release(empty(stage_before));
      release(own_empty);
      StoreGradient<kWidth>(first_sums, problem.first_gradient, item, head, first_row,
                            problem.rows);
      if constexpr (kOwnsKeys) {
        ptx::Pin(second_sums);
        StoreGradient<kWidth>(second_sums, problem.second_gradient, item, head, first_row,
                              problem.rows);
      }
    }
  }
}

}  // namespace plumbline::candidate_cuda::sm90

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_BACKWARD_CUH_
