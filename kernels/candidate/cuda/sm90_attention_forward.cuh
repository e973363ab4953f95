// The forward of attention on Hopper: kernels/candidate/cuda/attention.h says what it computes and
// in which order. One block a multiprocessor; it goes through (item, head, tile of kQueries
// queries) one after another. One warp brings tiles of kKeys keys and values with the copy engine;
// two warpgroups compute, 64 queries each. While the matrix units multiply for one of them the
// other computes its softmax, and within one the scores of a tile are multiplied beside the values
// of the tile before.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_FORWARD_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_FORWARD_CUH_

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

template <int kWidthArgument, int kKeysArgument>
struct ForwardTiles {
  static constexpr int kWidth = kWidthArgument;  // D
  static constexpr int kKeys = kKeysArgument;
  static constexpr int kQueries = 128;
  static constexpr int kStages = 2;
  static constexpr int kThreads = 384;
  static constexpr int kBoxes = kWidth / 64;  // of 64 channels
  static constexpr int kQueryBoxBytes = kQueries * 128;
  static constexpr int kKeyBoxBytes = kKeys * 128;
  static constexpr int kQueryBytes = kBoxes * kQueryBoxBytes;
  static constexpr int kKeyBytes = kBoxes * kKeyBoxBytes;
  static constexpr int kSharedBytes = 1024 + kQueryBytes + kStages * 2 * kKeyBytes;
  static_assert(kKeyBoxBytes % 1024 == 0 && kKeys % 16 == 0);
  static_assert(kSharedBytes <= 227 * 1024);
};

struct ForwardProblem {
  int rows;
  int heads;
  int items;
  int query_tiles;
  float scale_log2e;
  float* saved;  // or null
  cuda::View<bf16> output;
};

// One work item after another of a block.
struct ForwardWork {
  int head;
  int item;
  int first_query;

  __device__ ForwardWork(const ForwardProblem& problem, int number, int queries) {
    first_query = number % problem.query_tiles * queries;
    head = number / problem.query_tiles % problem.heads;
    item = number / problem.query_tiles / problem.heads;
  }
};

template <typename Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    AttentionForwardKernel(const __grid_constant__ CUtensorMap q_map,
                           const __grid_constant__ CUtensorMap k_map,
                           const __grid_constant__ CUtensorMap v_map, ForwardProblem problem) {
  constexpr int kKeys = Tiles::kKeys;
  constexpr int kWidth = Tiles::kWidth;
  constexpr int kStages = Tiles::kStages;
  constexpr int kConsumerWarps = 8;
  extern __shared__ char shared_memory[];
  __shared__ __align__(8) uint64_t barriers[2 + 4 * kStages];

  const uint32_t shared = (cuda::SharedAddress(shared_memory) + 1023) & ~1023u;
  const uint32_t queries = shared;
  const uint32_t keys = queries + Tiles::kQueryBytes;
  const uint32_t values = keys + kStages * Tiles::kKeyBytes;
  const uint32_t q_full = cuda::SharedAddress(barriers);
  const uint32_t q_empty = q_full + 8;
  const auto k_full = [&](int stage) { return q_full + 16 + 8 * stage; };
  const auto k_empty = [&](int stage) { return q_full + 16 + 8 * (kStages + stage); };
  const auto v_full = [&](int stage) { return q_full + 16 + 8 * (2 * kStages + stage); };
  const auto v_empty = [&](int stage) { return q_full + 16 + 8 * (3 * kStages + stage); };

  cuda::LetNextKernelStart();
  if (threadIdx.x == 0) {
    ptx::PrefetchTensorMap(&q_map);
    ptx::PrefetchTensorMap(&k_map);
    ptx::PrefetchTensorMap(&v_map);
    ptx::InitBarrier(q_full, 1);
    ptx::InitBarrier(q_empty, kConsumerWarps);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::InitBarrier(k_full(stage), 1);
      ptx::InitBarrier(k_empty(stage), kConsumerWarps);
      ptx::InitBarrier(v_full(stage), 1);
      ptx::InitBarrier(v_empty(stage), kConsumerWarps);
    }
    ptx::FenceBarrierInit();
  }
  __syncthreads();
  cuda::WaitForKernelsBefore();

  const int tiles = (problem.rows + kKeys - 1) / kKeys;
  const int works = problem.items * problem.heads * problem.query_tiles;

  if (threadIdx.x < 128) {
    ptx::ReleaseRegisters<24>();
    if (threadIdx.x == 0) {
      int loaded = 0;  // tiles, of all work so far
      int turn = 0;
      for (int number = blockIdx.x; number < works; number += gridDim.x, ++turn) {
        const ForwardWork work(problem, number, Tiles::kQueries);
        const auto load_keys = [&](int tile, const CUtensorMap* map, uint32_t ring, uint32_t full,
                                   uint32_t empty) {
          const int stage = (loaded + tile) % kStages;
          ptx::Wait(empty, (loaded + tile) / kStages % 2 ^ 1);
          ptx::ArriveExpecting(full, Tiles::kKeyBytes);
          for (int box = 0; box < Tiles::kBoxes; ++box) {
            ptx::LoadBox4(map, full, ring + stage * Tiles::kKeyBytes + box * Tiles::kKeyBoxBytes,
                          box * 64, tile * kKeys, work.head, work.item);
          }
        };
        const auto load_k = [&](int tile) {
          const int stage = (loaded + tile) % kStages;
          load_keys(tile, &k_map, keys, k_full(stage), k_empty(stage));
        };
        const auto load_v = [&](int tile) {
          const int stage = (loaded + tile) % kStages;
          load_keys(tile, &v_map, values, v_full(stage), v_empty(stage));
        };
        ptx::Wait(q_empty, turn % 2 ^ 1);
        ptx::ArriveExpecting(q_full, Tiles::kQueryBytes);
        for (int box = 0; box < Tiles::kBoxes; ++box) {
          ptx::LoadBox4(&q_map, q_full, queries + box * Tiles::kQueryBoxBytes, box * 64,
                        work.first_query, work.head, work.item);
        }
        load_k(0);
        for (int tile = 1; tile < tiles; ++tile) {
          load_k(tile);
          load_v(tile - 1);
        }
        load_v(tiles - 1);
        loaded += tiles;
      }
    }
  } else {
    ptx::TakeRegisters<240>();
    const int group = threadIdx.x / 128 - 1;
    const int warp = threadIdx.x % 128 / 32;
    const int lane = threadIdx.x % 32;
    const uint32_t own_queries = queries + group * 64 * 128;
    const float scale = problem.scale_log2e;
    // The turn of this warpgroup and that of the other one.
    const int own_turn = 1 + group;
    const int other_turn = 2 - group;
    if (group == 1) ptx::ArriveThreads(other_turn, 256);

    const auto release = [&](uint32_t barrier) {
      if (lane == 0) ptx::Arrive(barrier);
    };

    int read = 0;  // tiles, of all work so far
    int turn = 0;
    for (int number = blockIdx.x; number < works; number += gridDim.x, ++turn) {
      const ForwardWork work(problem, number, Tiles::kQueries);
      float scores[kKeys / 2];
      float sums[kWidth / 2];
      uint32_t weights[kKeys / 4];
      float maxima[2] = {-INFINITY, -INFINITY};
      float denominators[2] = {};
      float shrink[2];
#pragma unroll
      for (int i = 0; i < kWidth / 2; ++i) sums[i] = 0;

      // Starts scores = q k^T of a tile.
      const auto start_scores = [&](int tile) {
        const int stage = (read + tile) % kStages;
        const uint32_t tile_keys = keys + stage * Tiles::kKeyBytes;
#pragma unroll
        for (int step = 0; step < kWidth / 16; ++step) {
          const int offset = step / 4;
          const int within = step % 4 * 32;
          ptx::Product<kKeys>::template Shared<ptx::Major::kK, ptx::Major::kK>(
              scores,
              ptx::Describe<ptx::Major::kK>(own_queries + offset * Tiles::kQueryBoxBytes + within),
              ptx::Describe<ptx::Major::kK>(tile_keys + offset * Tiles::kKeyBoxBytes + within),
              step > 0);
        }
        ptx::CommitProducts();
      };
      // Starts sums += weights v of a tile.
      const auto start_sums = [&](int tile) {
        const int stage = (read + tile) % kStages;
        const uint32_t tile_values = values + stage * Tiles::kKeyBytes;
#pragma unroll
        for (int step = 0; step < kKeys / 16; ++step) {
          ptx::Product<kWidth>::template Registers<ptx::Major::kMn>(
              sums, weights + 4 * step,
              ptx::Describe<ptx::Major::kMn>(tile_values + step * 2048, Tiles::kKeyBoxBytes), true);
        }
        ptx::CommitProducts();
      };
      const auto wait_for = [&](uint32_t barrier, int tile) {
        ptx::Wait(barrier, (read + tile) / kStages % 2);
      };
      // scores become p; maxima and denominators go on; `shrink` is what earlier sums are worth.
      const auto soften = [&](int tile) {
        if ((tile + 1) * kKeys > problem.rows) {
#pragma unroll
          for (int i = 0; i < kKeys / 2; ++i) {
            const int key = tile * kKeys + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (key >= problem.rows) scores[i] = -INFINITY;
          }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float even = scores[2 * half];
          float odd = scores[2 * half + 1];
#pragma unroll
          for (int j = 1; j < kKeys / 8; ++j) {
            even = fmaxf(even, scores[4 * j + 2 * half]);
            odd = fmaxf(odd, scores[4 * j + 2 * half + 1]);
          }
          float maximum = fmaxf(maxima[half], fmaxf(even, odd));
          maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFF, maximum, 1));
          maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFF, maximum, 2));
          shrink[half] = cuda::Exp2((maxima[half] - maximum) * scale);
          maxima[half] = maximum;
          const float shift = -maximum * scale;
          even = 0;
          odd = 0;
#pragma unroll
          for (int j = 0; j < kKeys / 8; ++j) {
            float& first = scores[4 * j + 2 * half];
            float& second = scores[4 * j + 2 * half + 1];
            first = cuda::Exp2(__fmaf_rn(first, scale, shift));
            second = cuda::Exp2(__fmaf_rn(second, scale, shift));
            even += first;
            odd += second;
          }
          denominators[half] = __fmaf_rn(denominators[half], shrink[half], even + odd);
        }
      };
      const auto pack = [&] {
#pragma unroll
        for (int i = 0; i < kKeys / 4; ++i) {
          weights[i] = cuda::PackBf16(scores[2 * i], scores[2 * i + 1]);
        }
      };

      ptx::Wait(q_full, turn % 2);
      wait_for(k_full(read % kStages), 0);
      ptx::Pin(scores);
      ptx::FenceProducts();
      start_scores(0);
      ptx::WaitForProducts<0>();
      ptx::Pin(scores);
      release(k_empty(read % kStages));
      soften(0);
      pack();
      for (int tile = 1; tile < tiles; ++tile) {
        const int stage = (read + tile) % kStages;
        const int stage_before = (read + tile - 1) % kStages;
        wait_for(k_full(stage), tile);
        ptx::SyncThreads(own_turn, 256);
        ptx::Pin(scores);
        ptx::Pin(sums);
        ptx::FenceProducts();
        start_scores(tile);
        wait_for(v_full(stage_before), tile - 1);
        start_sums(tile - 1);
        ptx::ArriveThreads(other_turn, 256);
        ptx::WaitForProducts<1>();
        ptx::Pin(scores);
        release(k_empty(stage));
        soften(tile);
        ptx::WaitForProducts<0>();
        ptx::Pin(sums);
        release(v_empty(stage_before));
        pack();
        // Once the maxima stay, the factors are 1 and the products would change nothing.
        if (__any_sync(0xFFFFFFFF, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
          for (int i = 0; i < kWidth / 2; ++i) sums[i] *= shrink[i / 2 % 2];
        }
      }
      release(q_empty);
      const int last_stage = (read + tiles - 1) % kStages;
      wait_for(v_full(last_stage), tiles - 1);
      ptx::Pin(sums);
      ptx::FenceProducts();
      start_sums(tiles - 1);
      ptx::WaitForProducts<0>();
      ptx::Pin(sums);
      release(v_empty(last_stage));
      read += tiles;

#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float denominator = denominators[half];
        denominator += __shfl_xor_sync(0xFFFFFFFF, denominator, 1);
        denominator += __shfl_xor_sync(0xFFFFFFFF, denominator, 2);
        const float inverse = __frcp_rn(denominator);
        const int row = work.first_query + group * 64 + warp * 16 + half * 8 + lane / 4;
        if (row >= problem.rows) continue;
        if (problem.saved != nullptr && lane % 4 == 0) {
          problem.saved[(int64_t{work.item} * problem.heads + work.head) * problem.rows + row] =
              __fmaf_rn(maxima[half], scale, log2f(denominator));
        }
        bf16* const to = problem.output.Row(row, work.item) + work.head * kWidth + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < kWidth / 8; ++j) {
          *reinterpret_cast<uint32_t*>(to + j * 8) = cuda::PackBf16(
              sums[4 * j + 2 * half] * inverse, sums[4 * j + 2 * half + 1] * inverse);
        }
      }
    }
  }
}

}  // namespace plumbline::candidate_cuda::sm90

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_FORWARD_CUH_
