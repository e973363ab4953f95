#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/float32_product.h"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::cuda {
namespace {

// A block of threads computes kTile x kTile values of C, a thread kThreadTile x kThreadTile of
// them, kStep values of k at a time.
constexpr int kTile = 128;
constexpr int kThreadTile = 8;
constexpr int kStep = 8;
constexpr int kThreads = (kTile / kThreadTile) * (kTile / kThreadTile);
constexpr int64_t kSumBlock = 256;  // of the promised order
static_assert(kSumBlock % kStep == 0);
constexpr int kLoads = kTile * kStep / kThreads;  // of each operand, a thread and step
// A row of a tile in shared memory: float4 reads stay aligned, and writes along k are spread over
// the banks.
constexpr int kPitch = kTile + 4;

// Where element (i, k) of an operand is, in either type.
struct Source {
  const void* data;
  int64_t slice_stride;
  int64_t stride;
  int64_t summed_stride;
  bool is_bf16;
};

struct Bias {
  const void* data;  // or null
  bool is_bf16;
};

// A thread's part in loading the tiles of one operand: neighbours read neighbours in memory. Its
// loads of a tile are kLoads apart along one axis.
class Loader {
 public:
  __device__ Loader(const Source& source, int64_t slice, int64_t first, int64_t extent,
                    int64_t extent_k)
      : is_bf16_(source.is_bf16), along_k_(source.summed_stride == 1) {
    i_ = along_k_ ? threadIdx.x / kStep : threadIdx.x % kTile;
    k_ = along_k_ ? threadIdx.x % kStep : threadIdx.x / kTile;
    rows_left_ = static_cast<int>(min(extent - first, int64_t{kTile})) - i_;
    columns_left_ = extent_k - k_;
    place_ = slice * source.slice_stride + (first + i_) * source.stride + k_ * source.summed_stride;
    between_ =
        along_k_ ? kThreads / kStep * source.stride : kThreads / kTile * source.summed_stride;
    step_ = kStep * source.summed_stride;
    data_ = source.data;
  }

  // The next tile's values.
  __device__ void Load(float (&values)[kLoads]) {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const bool inside = along_k_ ? load * (kThreads / kStep) < rows_left_ && columns_left_ > 0
                                   : rows_left_ > 0 && load * (kThreads / kTile) < columns_left_;
      const int64_t place = place_ + load * between_;
      float value = 0;
      if (inside) {
        value = is_bf16_ ? Widen(static_cast<const bf16*>(data_)[place])
                         : static_cast<const float*>(data_)[place];
      }
      values[load] = value;
    }
    place_ += step_;
    columns_left_ -= kStep;
  }

  __device__ void Store(const float (&values)[kLoads], float (*tile)[kPitch]) const {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      if (along_k_) {
        tile[k_][i_ + load * (kThreads / kStep)] = values[load];
      } else {
        tile[k_ + load * (kThreads / kTile)][i_] = values[load];
      }
    }
  }

 private:
  const void* data_;
  bool is_bf16_;
  bool along_k_;
  int i_, k_;
  int rows_left_;
  int64_t columns_left_;
  int64_t place_;
  int64_t between_;
  int64_t step_;
};

template <typename Out>
__global__ void __launch_bounds__(kThreads, 1)
    ProductKernel(int64_t m, int64_t n, int64_t k, Source left, Source right, Bias bias,
                  float factor, Out* output, int64_t slice_stride, int64_t row_stride) {
  __shared__ float left_tile[2][kStep][kPitch];
  __shared__ float right_tile[2][kStep][kPitch];
  const int64_t slice = blockIdx.z;
  const int64_t first_m = int64_t{blockIdx.y} * kTile;
  const int64_t first_n = int64_t{blockIdx.x} * kTile;
  // A thread's rows are 4 from thread_m on and 4 from thread_m + 64 on; its columns likewise.
  const int thread_m = threadIdx.x / (kTile / kThreadTile) * 4;
  const int thread_n = threadIdx.x % (kTile / kThreadTile) * 4;

  float totals[kThreadTile][kThreadTile];
  float sums[kThreadTile][kThreadTile] = {};
  float next_left[kLoads], next_right[kLoads];
  Loader left_loader(left, slice, first_m, m, k);
  Loader right_loader(right, slice, first_n, n, k);
  left_loader.Load(next_left);
  right_loader.Load(next_right);
  left_loader.Store(next_left, left_tile[0]);
  right_loader.Store(next_right, right_tile[0]);
  __syncthreads();

  int current = 0;
  for (int64_t first_k = 0; first_k < k; first_k += kStep) {
    const bool more = first_k + kStep < k;
    if (more) {
      left_loader.Load(next_left);
      right_loader.Load(next_right);
    }
#pragma unroll
    for (int step = 0; step < kStep; ++step) {
      float a[kThreadTile], b[kThreadTile];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 rows =
            *reinterpret_cast<const float4*>(&left_tile[current][step][half * 64 + thread_m]);
        const float4 columns =
            *reinterpret_cast<const float4*>(&right_tile[current][step][half * 64 + thread_n]);
        a[half * 4] = rows.x, a[half * 4 + 1] = rows.y;
        a[half * 4 + 2] = rows.z, a[half * 4 + 3] = rows.w;
        b[half * 4] = columns.x, b[half * 4 + 1] = columns.y;
        b[half * 4 + 2] = columns.z, b[half * 4 + 3] = columns.w;
      }
#pragma unroll
      for (int i = 0; i < kThreadTile; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadTile; ++j) sums[i][j] = __fmaf_rn(a[i], b[j], sums[i][j]);
      }
    }
    const int64_t next_k = first_k + kStep;
    if (next_k % kSumBlock == 0 || !more) {
      const bool is_first = first_k < kSumBlock;
#pragma unroll
      for (int i = 0; i < kThreadTile; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadTile; ++j) {
          totals[i][j] = is_first ? sums[i][j] : totals[i][j] + sums[i][j];
          sums[i][j] = 0;
        }
      }
    }
    if (more) {
      left_loader.Store(next_left, left_tile[current ^ 1]);
      right_loader.Store(next_right, right_tile[current ^ 1]);
    }
    __syncthreads();
    current ^= 1;
  }

#pragma unroll
  for (int i = 0; i < kThreadTile; ++i) {
    const int64_t row = first_m + i / 4 * 64 + thread_m + i % 4;
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < kThreadTile; ++j) {
      const int64_t column = first_n + j / 4 * 64 + thread_n + j % 4;
      if (column >= n) continue;
      float value = k == 0 ? 0.0f : totals[i][j];
      if (factor != 1.0f) value *= factor;
      if (bias.data != nullptr) {
        value += bias.is_bf16 ? Widen(static_cast<const bf16*>(bias.data)[column])
                              : static_cast<const float*>(bias.data)[column];
      }
      output[slice * slice_stride + row * row_stride + column] = RoundTo<Out>(value);
    }
  }
}

dim3 Blocks(int64_t m, int64_t n, int64_t slices) {
  return dim3(static_cast<unsigned>((n + kTile - 1) / kTile),
              static_cast<unsigned>((m + kTile - 1) / kTile), static_cast<unsigned>(slices));
}

Source SourceOf(const Operand& operand) {
  const Tensor& tensor = operand.tensor;
  const bool along_width = operand.summed == SummedAxis::kWidth;
  return {tensor.data, 0, along_width ? tensor.row_stride : 1, along_width ? 1 : tensor.row_stride,
          tensor.dtype == DType::kBF16};
}

}  // namespace

absl::Status MultiplyFloat32(cudaStream_t stream, const Operand& left, const Operand& right,
                             const Tensor& bias, const Tensor& output) {
  const int64_t m = left.Extent();
  const int64_t n = right.Extent();
  const int64_t k = left.SummedExtent();
  if (m == 0 || n == 0) return absl::OkStatus();
  const Bias added = {bias.data, bias.dtype == DType::kBF16};
  if (output.dtype == DType::kBF16) {
    ProductKernel<<<Blocks(m, n, 1), kThreads, 0, stream>>>(
        m, n, k, SourceOf(left), SourceOf(right), added, 1.0f, static_cast<bf16*>(output.data),
        int64_t{0}, output.row_stride);
  } else {
    ProductKernel<<<Blocks(m, n, 1), kThreads, 0, stream>>>(
        m, n, k, SourceOf(left), SourceOf(right), added, 1.0f, static_cast<float*>(output.data),
        int64_t{0}, output.row_stride);
  }
  return LaunchStatus("float32 product");
}

absl::Status MultiplySlices(cudaStream_t stream, const SlicedProduct& product) {
  if (product.slices == 0 || product.m == 0 || product.n == 0) return absl::OkStatus();
  const auto source = [](const SlicedOperand& operand) {
    return Source{operand.data, operand.slice_stride, operand.stride, operand.summed_stride, false};
  };
  ProductKernel<<<Blocks(product.m, product.n, product.slices), kThreads, 0, stream>>>(
      product.m, product.n, product.k, source(product.left), source(product.right),
      Bias{nullptr, false}, product.factor, product.output, product.slice_stride,
      product.row_stride);
  return LaunchStatus("sliced float32 product");
}

}  // namespace plumbline::cuda
