// The matrix product of kernels/candidate/cuda/bf16_product.h on Hopper. C(m, n) is computed as its
// transpose: the right operand (a weight's outputs, n) is the matrix units' first one, 128 values a
// block and 64 for each of two warpgroups, and the left operand (rows of activations, m) their
// second one, kRows of them, so that few rows need not be filled up to a large tile. Two blocks of
// a cluster take neighbouring 128 of n, and share the rows: each loads half of them for both. One
// warp brings steps of 64 of k with the copy engine into a ring. Blocks stay and go through tiles
// one after another, in groups of rows so that what they read stays in the second-level cache.
//
// The order of a value's sum is that of k and the same for every shape of tile: which tile is taken
// is free. Sums over very many k are cut into runs (bf16_product.h), which are tiles of their own.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_PRODUCT_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_PRODUCT_CUH_

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda::sm90 {

using cuda::bf16;
namespace ptx = cuda::ptx;

// What the two blocks of a cluster have in common.
enum class Cluster { kNone, kSameRows, kSameColumns };

inline constexpr int kProductStep = 64;  // of k, of a stage of the ring

template <int kRowsArgument, Cluster kClusterArgument, ptx::Major kRightArgument,
          ptx::Major kLeftArgument>
struct ProductTiles {
  static constexpr int kColumns = 128;         // of C, of one block
  static constexpr int kRows = kRowsArgument;  // of C
  static constexpr Cluster kShares = kClusterArgument;
  static constexpr int kCluster = kShares == Cluster::kNone ? 1 : 2;
  static constexpr ptx::Major kRight = kRightArgument;
  static constexpr ptx::Major kLeft = kLeftArgument;
  static constexpr int kStep = kProductStep;
  static constexpr int kThreads = 384;
  static constexpr int kRightBytes = kColumns * kStep * 2;
  static constexpr int kLeftBytes = kRows * kStep * 2;
  static constexpr int kStageBytes = kRightBytes + kLeftBytes;
  // Rows whose results pass through shared memory at once.
  static constexpr int kStoredRows = kRows > 128 && kRows % 32 == 0 ? kRows / 2 : kRows;
  static constexpr int kStoredBytes = kStoredRows * 128;  // of one warpgroup
  static constexpr int kMostStages = (227 * 1024 - 1024 - 256 - 2 * kStoredBytes) / kStageBytes;
  static constexpr int kStages = kMostStages < 8 ? kMostStages : 8;
  static constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 2 * kStoredBytes;
  // What one block of the cluster loads of either operand, and in one box.
  static constexpr int kLoadedRows = kShares == Cluster::kSameRows ? kRows / 2 : kRows;
  static constexpr int kLoadedColumns = kShares == Cluster::kSameColumns ? kColumns / 2 : kColumns;
  static constexpr int kLeftBoxRows = kLeft == ptx::Major::kK ? kLoadedRows : kStep;
  static constexpr int kRightBoxRows = kRight == ptx::Major::kK ? kLoadedColumns : kStep;
  static_assert(kStoredRows % 16 == 0 && kLoadedRows % 8 == 0);
  static_assert(kLeft == ptx::Major::kK || kLoadedRows % 64 == 0);
};

struct ProductProblem {
  int rows;       // m
  int columns;    // n
  int steps;      // of k
  int run_steps;  // of a run of k; all of them where there is one run
  int runs;
  int row_tiles;         // of a cluster
  int column_tiles;      // of a cluster
  int group;             // row tiles that run beside one another before the columns move on
  bool right_is_weight;  // which no kernel just before has written
  const bf16* bias;      // (n), or null
  float* output;         // where C is float32, or several runs' sums one after another; else null:
                         // through the map
  int64_t output_stride;
};

template <typename Tiles>
struct ProductPlace {
  int first_row;
  int first_column;
  int run;
  int first_step;
  int last_step;  // the one behind

  __device__ ProductPlace(const ProductProblem& problem, int number, int rank) {
    const int tiles = problem.row_tiles * problem.column_tiles;
    run = number / tiles;
    number -= run * tiles;
    first_step = run * problem.run_steps;
    last_step = min(first_step + problem.run_steps, problem.steps);
    const int group = number / (problem.group * problem.column_tiles);
    const int in_group = number % (problem.group * problem.column_tiles);
    const int height = min(problem.group, problem.row_tiles - group * problem.group);
    const int row_tile = group * problem.group + in_group % height;
    const int column_tile = in_group / height;
    constexpr bool kSameColumns = Tiles::kShares == Cluster::kSameColumns;
    constexpr bool kSameRows = Tiles::kShares == Cluster::kSameRows;
    first_row = (kSameColumns ? row_tile * 2 + rank : row_tile) * Tiles::kRows;
    first_column = (kSameRows ? column_tile * 2 + rank : column_tile) * Tiles::kColumns;
  }
};

template <typename Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    ProductKernel(const __grid_constant__ CUtensorMap right_map,
                  const __grid_constant__ CUtensorMap left_map,
                  const __grid_constant__ CUtensorMap output_map, ProductProblem problem) {
  constexpr int kRows = Tiles::kRows;
  constexpr int kStages = Tiles::kStages;
  constexpr int kCluster = Tiles::kCluster;
  constexpr int kConsumerWarps = 8;
  extern __shared__ char shared_memory[];
  __shared__ __align__(8) uint64_t barriers[2 * kStages];

  const uint32_t ring = (cuda::SharedAddress(shared_memory) + 1023) & ~1023u;
  const uint32_t stored = ring + kStages * Tiles::kStageBytes;
  const auto full = [&](int stage) { return cuda::SharedAddress(barriers) + 8 * stage; };
  const auto empty = [&](int stage) {
    return cuda::SharedAddress(barriers) + 8 * (kStages + stage);
  };
  const int rank = kCluster == 1 ? 0 : static_cast<int>(ptx::ClusterRank());

  const int works = problem.row_tiles * problem.column_tiles * problem.runs;
  const int first_work = blockIdx.x / kCluster;
  const int works_apart = gridDim.x / kCluster;

  cuda::LetNextKernelStart();
  if (threadIdx.x == 0) {
    ptx::PrefetchTensorMap(&right_map);
    ptx::PrefetchTensorMap(&left_map);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::InitBarrier(full(stage), 1);
      ptx::InitBarrier(empty(stage), kCluster * kConsumerWarps);
    }
    ptx::FenceBarrierInit();
    if (problem.right_is_weight) {
      // A cache may hold it before it is written: what is loaded is loaded after the wait.
      const ProductPlace<Tiles> place(problem, first_work, rank);
      const int last_step = min(place.first_step + Tiles::kStages, place.last_step);
      for (int step = place.first_step; step < last_step; ++step) {
        const int k = step * Tiles::kStep;
        if constexpr (Tiles::kRight == ptx::Major::kK) {
          constexpr bool kHalf = Tiles::kShares == Cluster::kSameColumns;
          ptx::PrefetchBox2(&right_map, k,
                            place.first_column + (kHalf ? rank * Tiles::kLoadedColumns : 0));
        } else {
          ptx::PrefetchBox2(&right_map, place.first_column, k);
          ptx::PrefetchBox2(&right_map, place.first_column + 64, k);
        }
      }
    }
  }
  __syncthreads();
  cuda::WaitForKernelsBefore();
  if constexpr (kCluster > 1) ptx::SyncCluster();

  if (threadIdx.x < 128) {
    ptx::ReleaseRegisters<40>();
    if (threadIdx.x == 0) {
      int stage = 0;
      int parity = 1;
      for (int number = first_work; number < works; number += works_apart) {
        const ProductPlace<Tiles> place(problem, number, rank);
        for (int step = place.first_step; step < place.last_step; ++step) {
          const int k = step * Tiles::kStep;
          const uint32_t right = ring + stage * Tiles::kStageBytes;
          const uint32_t left = right + Tiles::kRightBytes;
          ptx::Wait(empty(stage), parity);
          ptx::ArriveExpecting(full(stage), Tiles::kStageBytes);
          const auto load = [&](auto shared, const CUtensorMap* map, uint32_t to, int x, int y) {
            if constexpr (decltype(shared)::value) {
              ptx::LoadBox2ToCluster(map, full(stage), to, x, y, 3);
            } else {
              ptx::LoadBox2(map, full(stage), to, x, y);
            }
          };
          // `count` values of m or n of an operand, from `first` of the tile on.
          const auto load_operand = [&](auto major, auto shared, const CUtensorMap* map,
                                        uint32_t tile, int tile_first, int first, int count) {
            if constexpr (decltype(major)::value == ptx::Major::kK) {
              load(shared, map, tile + first * 128, k, tile_first + first);
            } else {
              for (int box = first; box < first + count; box += 64) {
                load(shared, map, tile + box * 128, tile_first + box, k);
              }
            }
          };
          constexpr bool kSameColumns = Tiles::kShares == Cluster::kSameColumns;
          constexpr bool kSameRows = Tiles::kShares == Cluster::kSameRows;
          load_operand(std::integral_constant<ptx::Major, Tiles::kRight>(),
                       std::bool_constant<kSameColumns>(), &right_map, right, place.first_column,
                       kSameColumns ? rank * Tiles::kLoadedColumns : 0, Tiles::kLoadedColumns);
          load_operand(std::integral_constant<ptx::Major, Tiles::kLeft>(),
                       std::bool_constant<kSameRows>(), &left_map, left, place.first_row,
                       kSameRows ? rank * Tiles::kLoadedRows : 0, Tiles::kLoadedRows);
          if (++stage == kStages) {
            stage = 0;
            parity ^= 1;
          }
        }
      }
    }
  } else {
    ptx::TakeRegisters<232>();
    const int group = threadIdx.x / 128 - 1;
    const int warp = threadIdx.x % 128 / 32;
    const int lane = threadIdx.x % 32;
    const uint32_t own_stored = stored + group * Tiles::kStoredBytes;
    const auto release = [&](int stage) {
      if constexpr (kCluster == 1) {
        if (lane == 0) ptx::Arrive(empty(stage));
      } else {
        if (lane < kCluster) ptx::ArriveAt(empty(stage), lane);
      }
    };
    // Where the first 16 of k begin, 64 of n for this warpgroup.
    const uint32_t own_right = group * (Tiles::kRight == ptx::Major::kK ? 64 : Tiles::kStep) * 128;
    constexpr int kRightStep = Tiles::kRight == ptx::Major::kK ? 32 : 2048;
    constexpr int kLeftStep = Tiles::kLeft == ptx::Major::kK ? 32 : 2048;

    int stage = 0;
    int parity = 0;
    for (int number = first_work; number < works; number += works_apart) {
      const ProductPlace<Tiles> place(problem, number, rank);
      float sums[kRows / 2];
      int stage_before = 0;
      for (int step = place.first_step; step < place.last_step; ++step) {
        ptx::Wait(full(stage), parity);
        const uint32_t right = ring + stage * Tiles::kStageBytes;
        const uint32_t left = right + Tiles::kRightBytes;
        ptx::Pin(sums);
        ptx::FenceProducts();
#pragma unroll
        for (int k = 0; k < Tiles::kStep / 16; ++k) {
          ptx::Product<kRows>::template Shared<Tiles::kRight, Tiles::kLeft>(
              sums,
              ptx::Describe<Tiles::kRight>(right + own_right + k * kRightStep, Tiles::kStep * 128),
              ptx::Describe<Tiles::kLeft>(left + k * kLeftStep, Tiles::kStep * 128),
              step > place.first_step || k > 0);
        }
        ptx::CommitProducts();
        ptx::Pin(sums);
        ptx::WaitForProducts<1>();
        if (step > place.first_step) release(stage_before);
        stage_before = stage;
        if (++stage == kStages) {
          stage = 0;
          parity ^= 1;
        }
      }
      ptx::WaitForProducts<0>();
      ptx::Pin(sums);
      release(stage_before);

      const int own_column = place.first_column + group * 64;
      float biases[2] = {};
      if (problem.bias != nullptr) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int column = own_column + warp * 16 + half * 8 + lane / 4;
          if (column < problem.columns) biases[half] = cuda::Widen(problem.bias[column]);
        }
#pragma unroll
        for (int i = 0; i < kRows / 2; ++i) sums[i] += biases[i / 2 % 2];
      }
      if (problem.output != nullptr) {
#pragma unroll
        for (int i = 0; i < kRows / 2; ++i) {
          const int row = place.first_row + i / 4 * 8 + lane % 4 * 2 + i % 2;
          const int column = own_column + warp * 16 + i / 2 % 2 * 8 + lane / 4;
          if (row < problem.rows && column < problem.columns) {
            const int64_t output_row = int64_t{place.run} * problem.rows + row;
            problem.output[output_row * problem.output_stride + column] =
                problem.runs > 1 ? sums[i] : cuda::RoundThroughBf16(sums[i]);
          }
        }
        continue;
      }
      // Rows of 64 values: this warp has 16 of them in each, two chunks of 16 bytes.
#pragma unroll
      for (int part = 0; part < kRows / Tiles::kStoredRows; ++part) {
        if (warp == 0) ptx::WaitForStoreReads<0>();
        ptx::SyncThreads(1 + group, 128);
#pragma unroll
        for (int j = 0; j < Tiles::kStoredRows / 8; j += 2) {
          const int first = (part * Tiles::kStoredRows / 8 + j) * 4;
          const int row = (j + lane / 16) * 8 + lane % 8;
          const int chunk = (warp * 2 + lane / 8 % 2) ^ (row & 7);
          ptx::StoreMatricesTransposed(own_stored + row * 128 + chunk * 16,
                                       cuda::PackBf16(sums[first], sums[first + 1]),
                                       cuda::PackBf16(sums[first + 2], sums[first + 3]),
                                       cuda::PackBf16(sums[first + 4], sums[first + 5]),
                                       cuda::PackBf16(sums[first + 6], sums[first + 7]));
        }
        ptx::FenceSharedWrites();
        ptx::SyncThreads(1 + group, 128);
        if (warp == 0 && lane == 0) {
          ptx::StoreBox2(&output_map, own_stored, own_column,
                         place.first_row + part * Tiles::kStoredRows);
          ptx::CommitStores();
        }
      }
    }
    if (warp == 0) ptx::WaitForStores<0>();
  }
  // A block's barriers and ring must be there until the others of its cluster are done with them.
  if constexpr (kCluster > 1) ptx::SyncCluster();
}

}  // namespace plumbline::candidate_cuda::sm90

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_PRODUCT_CUH_
