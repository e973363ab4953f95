// The forward of the norms over whole rows where everything is aligned to 16 bytes, alone and with
// the gated residual before it: a row is read once and kept in registers. rms_norm.cuh and
// gated_residual.cu say shapes, rounding points and order; the bytes are theirs.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_

#include <cuda_runtime.h>

#include <type_traits>

#include "absl/status/status.h"
#include "kernels/candidate/cuda/rms_norm.cuh"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/early_launch.cuh"

namespace plumbline::candidate_cuda {

// The widest row: 11 chunks for each thread.
inline constexpr int kMostRowChunks = 11;
inline constexpr int64_t kMostWideNormWidth = int64_t{kMostRowChunks} * kRowThreads * kChunkValues;

struct GatedBranch {
  View<const bf16> branch;
  View<const bf16> gate;
  View<const int64_t> index;
  View<bf16> sum;  // x + gate branch; null where nobody else reads it
};

// What the rows of one table row have in common, in memory.
struct NormTables {
  const bf16* weight;
  const bf16* scale;
  const bf16* shift;
  const bf16* gate;

  __device__ Chunk Weight(int column) const { return LoadChunk(weight + column); }
  __device__ Chunk Factor(int column) const {
    return AddChunks(LoadChunk(scale + column), ChunkOfOnes());
  }
  __device__ Chunk Shift(int column) const { return LoadChunk(shift + column); }
  __device__ Chunk Gate(int column) const { return LoadChunk(gate + column); }
};

// And in shared memory, where a block goes through many rows.
template <bool kResidual, bool kModulated>
class SharedNormTables {
 public:
  // By all threads of the block, and a barrier after it.
  __device__ void Fill(const NormTables& from, int width) {
    for (int column = static_cast<int>(threadIdx.x) * kChunkValues; column < width;
         column += static_cast<int>(blockDim.x) * kChunkValues) {
      const int place = column / kChunkValues;
      weight_[place] = from.Weight(column);
      if constexpr (kModulated) {
        factor_[place] = from.Factor(column);
        shift_[place] = from.Shift(column);
      }
      if constexpr (kResidual) gate_[place] = from.Gate(column);
    }
  }
  __device__ Chunk Weight(int column) const { return weight_[column / kChunkValues]; }
  __device__ Chunk Factor(int column) const { return factor_[column / kChunkValues]; }
  __device__ Chunk Shift(int column) const { return shift_[column / kChunkValues]; }
  __device__ Chunk Gate(int column) const { return gate_[column / kChunkValues]; }

 private:
  static constexpr int kChunks = kMostRowChunks * kRowThreads;

  Chunk weight_[kChunks];
  Chunk factor_[kModulated ? kChunks : 1];
  Chunk shift_[kModulated ? kChunks : 1];
  Chunk gate_[kResidual ? kChunks : 1];
};

// The arguments of both kernels.
struct NormRows {
  unsigned rows;  // of one batch item
  int flat_rows;
  int width;
  View<const bf16> x;
  GatedBranch branch;
  const bf16* weight;
  Modulation modulation;
  float epsilon;
  float* saved;  // or null
  View<bf16> output;

  // Which rows of the tables a row reads.
  template <bool kResidual, bool kModulated>
  __device__ NormTables Tables(unsigned row) const {
    NormTables tables = {weight, nullptr, nullptr, nullptr};
    if constexpr (kModulated) {
      const int64_t table_row = *modulation.index.Row(row);
      tables.scale = modulation.scale.Row(table_row);
      tables.shift = modulation.shift.Row(table_row);
    }
    if constexpr (kResidual) tables.gate = branch.gate.Row(*branch.index.Row(row));
    return tables;
  }
};

// The branch's part of a chunk.
template <typename Tables>
__device__ Chunk AddBranch(const Chunk& x, const Chunk& branch, const Tables& tables, int column) {
  return AddChunks(x, MultiplyChunks(tables.Gate(column), branch));
}

template <bool kModulated, typename Tables>
__device__ Chunk Normalise(const Chunk& x, float r, const Tables& tables, int column) {
  float values[kChunkValues], weights[kChunkValues];
  WidenChunk(x, values);
  WidenChunk(tables.Weight(column), weights);
#pragma unroll
  for (int j = 0; j < kChunkValues; ++j) values[j] = values[j] * r * weights[j];
  Chunk result = RoundChunk(values);
  if constexpr (kModulated) {
    result = AddChunks(MultiplyChunks(result, tables.Factor(column)), tables.Shift(column));
  }
  return result;
}

// r of a row from its lanes' sums; saved where that is wanted.
__device__ inline float InverseRoot(const NormRows& all, const LaneSums& sums, int flat_row,
                                    int barrier, float* shared) {
  const float mean_square = FoldRow(sums, barrier, shared) / static_cast<float>(all.width);
  const float r = rsqrtf(mean_square + all.epsilon);
  if (all.saved != nullptr && threadIdx.x % kRowThreads == 0) all.saved[flat_row] = r;
  return r;
}

// Values between two chunks of a thread.
inline constexpr int kChunksApart = kRowThreads * kChunkValues;

// Few rows: one a block, whose threads keep it in registers.
inline constexpr int kBlocksOfNorm = 8;  // of a multiprocessor: some read while others write

template <bool kResidual, bool kModulated>
__global__ void __launch_bounds__(kRowThreads, kBlocksOfNorm)
    WideNormKernel(const __grid_constant__ NormRows all) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  __shared__ float shared[4];
  const unsigned item = blockIdx.x / all.rows;
  const unsigned row = blockIdx.x - item * all.rows;
  const NormTables tables = all.template Tables<kResidual, kModulated>(row);
  const int first = static_cast<int>(threadIdx.x) * kChunkValues;
  const bf16* const from = all.x.Row(row, item);
  Chunk kept[kMostRowChunks];
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    const int column = first + i * kChunksApart;
    if (column < all.width) kept[i] = LoadChunk(from + column);
  }
  if constexpr (kResidual) {
    const bf16* const added = all.branch.branch.Row(row, item);
#pragma unroll
    for (int i = 0; i < kMostRowChunks; ++i) {
      const int column = first + i * kChunksApart;
      if (column >= all.width) continue;
      kept[i] = AddBranch(kept[i], LoadChunk(added + column), tables, column);
      if (!all.branch.sum.IsNull()) StoreChunk(kept[i], all.branch.sum.Row(row, item) + column);
    }
  }
  LaneSums sums;
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    if (first + i * kChunksApart >= all.width) continue;
    float values[kChunkValues];
    WidenChunk(kept[i], values);
    sums.Add(values, values);
  }
  const float r = InverseRoot(all, sums, static_cast<int>(blockIdx.x), 0, shared);
  bf16* const to = all.output.Row(row, item);
#pragma unroll
  for (int i = 0; i < kMostRowChunks; ++i) {
    const int column = first + i * kChunksApart;
    if (column < all.width) {
      StoreChunk(Normalise<kModulated>(kept[i], r, tables, column), to + column);
    }
  }
}

// Many rows: one block a multiprocessor, which has neighbouring rows and, in shared memory, the
// table rows of the first of them; rows that read others go to memory. A team of kRowThreads has a
// row at a time, also in shared memory: where the thread that brings a chunk is the one that reads
// it, and registers are left for many teams.
template <bool kResidual, bool kModulated>
struct ManyRows {
  static constexpr int kTeams = kResidual ? 8 : 16;
  static constexpr int kThreads = kTeams * kRowThreads;
  static constexpr int kRowBytes = static_cast<int>(kMostWideNormWidth * sizeof(bf16));
  static constexpr int kTeamBytes = kResidual ? 2 * kRowBytes : kRowBytes;  // the branch's too
  static constexpr int kTableBytes = sizeof(SharedNormTables<kResidual, kModulated>);
  static constexpr int kSharedBytes = kTableBytes + kTeams * kTeamBytes;
};

template <bool kResidual, bool kModulated>
__global__ void __launch_bounds__(ManyRows<kResidual, kModulated>::kThreads, 1)
    ManyRowsNormKernel(const __grid_constant__ NormRows all, int rows_of_block) {
  using Rows = ManyRows<kResidual, kModulated>;
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  extern __shared__ __align__(16) char norm_memory[];
  __shared__ float shared[Rows::kTeams][4];
  auto& cached = *reinterpret_cast<SharedNormTables<kResidual, kModulated>*>(norm_memory);
  const int first_row = static_cast<int>(blockIdx.x) * rows_of_block;
  const int last_row = min(first_row + rows_of_block, all.flat_rows);
  if (first_row >= last_row) return;
  const NormTables tables =
      all.template Tables<kResidual, kModulated>(static_cast<unsigned>(first_row) % all.rows);
  cached.Fill(tables, all.width);
  __syncthreads();

  const int team = static_cast<int>(threadIdx.x) / kRowThreads;
  const int first = static_cast<int>(threadIdx.x) % kRowThreads * kChunkValues;
  bf16* const kept =
      reinterpret_cast<bf16*>(norm_memory + Rows::kTableBytes + team * Rows::kTeamBytes);
  bf16* const branches = kept + kMostWideNormWidth;
  for (int flat_row = first_row + team; flat_row < last_row; flat_row += Rows::kTeams) {
    const unsigned item = static_cast<unsigned>(flat_row) / all.rows;
    const unsigned row = static_cast<unsigned>(flat_row) - item * all.rows;
    const bf16* const from = all.x.Row(row, item);
    for (int column = first; column < all.width; column += kChunksApart) {
      cuda::CopyAsync(cuda::SharedAddress(kept + column), from + column, true);
    }
    if constexpr (kResidual) {
      const bf16* const added = all.branch.branch.Row(row, item);
      for (int column = first; column < all.width; column += kChunksApart) {
        cuda::CopyAsync(cuda::SharedAddress(branches + column), added + column, true);
      }
    }
    cuda::CommitCopies();
    const NormTables own = all.template Tables<kResidual, kModulated>(row);
    cuda::WaitForCopies<0>();

    const auto finish = [&](const auto& row_tables) {
      LaneSums sums;
#pragma unroll 2
      for (int column = first; column < all.width; column += kChunksApart) {
        Chunk x = LoadChunk(kept + column);
        if constexpr (kResidual) {
          x = AddBranch(x, LoadChunk(branches + column), row_tables, column);
          StoreChunk(x, kept + column);
          if (!all.branch.sum.IsNull()) StoreChunk(x, all.branch.sum.Row(row, item) + column);
        }
        float values[kChunkValues];
        WidenChunk(x, values);
        sums.Add(values, values);
      }
      const float r = InverseRoot(all, sums, flat_row, team, shared[team]);
      bf16* const to = all.output.Row(row, item);
#pragma unroll 2
      for (int column = first; column < all.width; column += kChunksApart) {
        StoreChunk(Normalise<kModulated>(LoadChunk(kept + column), r, row_tables, column),
                   to + column);
      }
    };
    if (own.scale == tables.scale && own.gate == tables.gate) {
      finish(cached);
    } else {
      finish(own);
    }
  }
}

// Rows for each multiprocessor from which on the second kernel is taken.
inline constexpr int64_t kLeastRowsOfBlock = 16;

// Whether rows of `width` values, whose tensors are aligned to kChunkValues, are taken.
inline bool TakesWideNorm(int64_t width, bool aligned) {
  return aligned && width % kChunkValues == 0 && width <= kMostWideNormWidth;
}

// `branch` and `modulation` may be null.
inline absl::Status WideNorm(cudaStream_t stream, const Tensor& x, const GatedBranch* branch,
                             const Tensor& weight, const Modulation* modulation, float epsilon,
                             float* saved, const Tensor& output) {
  const int64_t flat_rows = x.batch * x.rows;
  if (flat_rows == 0) return absl::OkStatus();
  const View<const bf16> none{Tensor()};
  const GatedBranch gated =
      branch != nullptr
          ? *branch
          : GatedBranch{none, none, View<const int64_t>(Tensor()), View<bf16>(Tensor())};
  const Modulation modulated = modulation != nullptr ? *modulation : Modulation::None();
  const NormRows all = {static_cast<unsigned>(x.rows),
                        static_cast<int>(flat_rows),
                        static_cast<int>(x.width),
                        View<const bf16>(x),
                        gated,
                        static_cast<const bf16*>(weight.data),
                        modulated,
                        epsilon,
                        saved,
                        View<bf16>(output)};
  const auto launch = [&](auto has_residual, auto is_modulated) {
    constexpr bool kResidual = decltype(has_residual)::value;
    constexpr bool kModulated = decltype(is_modulated)::value;
    constexpr char kName[] = "candidate RMSNorm";
    using Rows = ManyRows<kResidual, kModulated>;
    const int blocks = cuda::MultiprocessorCount();
    // Other cards have less shared memory.
    if (!cuda::RunsSm90Code() || flat_rows < kLeastRowsOfBlock * blocks) {
      return cuda::LaunchEarly(stream, kName, WideNormKernel<kResidual, kModulated>,
                               static_cast<unsigned>(flat_rows), kRowThreads, 0, all);
    }
    const auto kernel = ManyRowsNormKernel<kResidual, kModulated>;
    const absl::Status allowed =
        CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        Rows::kSharedBytes),
                   kName);
    if (!allowed.ok()) return allowed;
    return cuda::LaunchEarly(stream, kName, kernel, blocks, Rows::kThreads, Rows::kSharedBytes, all,
                             static_cast<int>((flat_rows + blocks - 1) / blocks));
  };
  if (branch != nullptr) {
    return modulation != nullptr ? launch(std::true_type(), std::true_type())
                                 : launch(std::true_type(), std::false_type());
  }
  return modulation != nullptr ? launch(std::false_type(), std::true_type())
                               : launch(std::false_type(), std::false_type());
}

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_WIDE_NORM_CUH_
