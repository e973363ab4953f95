// What the fused attention kernels share: rows of one head as tiles in shared memory.
#ifndef PLUMBLINE_KERNELS_CUDA_ATTENTION_TILES_CUH_
#define PLUMBLINE_KERNELS_CUDA_ATTENTION_TILES_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/ops.h"

namespace plumbline::cuda {

inline constexpr int kChunk = 8;  // values of 16 bytes
inline constexpr float kLog2E = 1.44269504088896340736f;

struct AttentionShape {
  int64_t rows;
  int heads;
  int width;          // D
  float scale;        // 1 / sqrt(D)
  float scale_log2e;  // scale * log2(e), in float32

  AttentionShape(const Tensor& q, const Attributes& attributes)
      : rows(q.rows),
        heads(static_cast<int>(q.width / attributes.head_width)),
        width(static_cast<int>(attributes.head_width)),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)))),
        scale_log2e(scale * kLog2E) {}
};

__device__ inline float Exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// kRows rows of one head, widened with zeros to kWidth channels; kThreads threads load it. Rows are
// kWidth / 8 chunks, whose places are exchanged within groups of 8 by the row's number, so that the
// 8 rows of a matrix that ldmatrix reads lie in different banks.
template <int kRows, int kWidth, int kThreads>
struct HeadTile {
  static constexpr int kRowChunks = kWidth / kChunk;
  static constexpr int kBytes = kRows * kWidth * static_cast<int>(sizeof(bf16));
  static_assert(kRows * kRowChunks % kThreads == 0);

  __device__ static uint32_t Offset(int row, int chunk) {
    return static_cast<uint32_t>(row * kRowChunks + (chunk ^ (row & 7))) * 16;
  }

  // Starts the copies of rows [first, first + kRows); those from `rows` on are zeros. `head` points
  // to the head's first value of its item.
  template <bool kAligned>
  __device__ static void Load(const bf16* head, int64_t row_stride, int64_t first, int64_t rows,
                              int width, char* tile) {
#pragma unroll
    for (int i = 0; i < kRows * kRowChunks / kThreads; ++i) {
      const int number = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = number / kRowChunks;
      const int channel = number % kRowChunks * kChunk;
      const bool row_inside = first + row < rows;
      const bf16* const from = head + (first + row) * row_stride + channel;
      char* const to = tile + Offset(row, number % kRowChunks);
      if constexpr (kAligned) {
        const bool inside = row_inside && channel < width;
        CopyAsync(SharedAddress(to), inside ? from : head, inside);
      } else {
        Run<bf16, kChunk> values;
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
          values.values[j] = row_inside && channel + j < width ? from[j] : RoundToBf16(0.0f);
        }
        *reinterpret_cast<Run<bf16, kChunk>*>(to) = values;
      }
    }
  }

  // As the left operand: rows [row, row + 16), channels [channel, channel + 16).
  __device__ static void LoadLeft(uint32_t tile, int row, int channel, uint32_t (&fragment)[4]) {
    const int lane = threadIdx.x % 32;
    LoadMatrices(tile + Offset(row + lane % 16, channel / kChunk + lane / 16), fragment);
  }

  // As the right operand of a sum over channels: rows [row, row + 8) (the first two) and the
  // next 8.
  __device__ static void LoadRight(uint32_t tile, int row, int channel, uint32_t (&fragments)[4]) {
    const int lane = threadIdx.x % 32;
    LoadMatrices(tile + Offset(row + lane / 16 * 8 + lane % 8, channel / kChunk + lane / 8 % 2),
                 fragments);
  }

  // As the right operand of a sum over rows [row, row + 16): channels [channel, channel + 8) (the
  // first two) and the next 8.
  __device__ static void LoadRightOverRows(uint32_t tile, int row, int channel,
                                           uint32_t (&fragments)[4]) {
    const int lane = threadIdx.x % 32;
    LoadMatricesTransposed(tile + Offset(row + lane % 16, channel / kChunk + lane / 16), fragments);
  }
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ATTENTION_TILES_CUH_
