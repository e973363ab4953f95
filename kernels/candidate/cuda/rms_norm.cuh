// The rows of kRmsNorm and kModulatedRmsNorm: one kernel each for the forward, the gradient of the
// input and that of the weight, the modulation being an option.
//
// kRmsNorm: x (batch, R, W) bfloat16, weight (1, 1, G) bfloat16, W a multiple of G: each run of G
//   channels is normalised by itself.
//   r = rsqrt(sum of x^2 / G + epsilon), n = round((x r) weight): float32 and one rounding.
// kModulatedRmsNorm: x (batch, R, H), scale and shift (1, table rows, H), weight (1, 1, H)
//   bfloat16, index (1, R, 1) int64.
//   y = round(round(n round(1 + scale[index])) + shift[index]), n as above with G = H.
// Saved for the backward: r, float32, (batch * R, W / G).
//
// Backward of g. Modulated first: dshift and dscale are the float32 sums in row order of g and of
// round(g n), rounded once (table_gradient.cuh); dn = round(g round(1 + scale)). Then, in float32
// with one rounding of each result, xn = x r:
//   dx = r (dn weight - xn (sum of dn weight xn) / G);
//   dweight = the sum over rows, and within a row over its runs of channels, of dn xn
//   (parameter_gradient.h).
// Order of the sums along a row: kernels/cuda/row_sum.cuh. r is the hardware's reciprocal square
// root, as PyTorch's.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_RMS_NORM_CUH_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_RMS_NORM_CUH_

#include "kernels/candidate/cuda/norm_rows.cuh"
#include "kernels/candidate/cuda/norm_weight_gradient.cuh"
#include "kernels/candidate/cuda/parameter_gradient.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

// One run of channels: where it is, and who it belongs to.
struct NormPlace {
  int64_t number;  // flat row * groups + run
  int64_t item;
  int64_t row;
  int64_t column;

  __device__ NormPlace(const NormShape& shape, int64_t number) : number(number) {
    const int64_t flat_row = number / shape.groups;
    item = flat_row / shape.rows;
    row = flat_row % shape.rows;
    column = number % shape.groups * shape.width;
  }
};

template <int kWarps, bool kAligned, bool kModulated>
__global__ void __launch_bounds__(cuda::kRowWarps* cuda::kWarpSize)
    RmsNormKernel(NormShape shape, View<const bf16> x, const bf16* weight, Modulation modulation,
                  float epsilon, float* saved, View<bf16> output) {
  using Team = RowTeam<kWarps>;
  __shared__ float shared[cuda::kRowWarps];
  const int64_t number = int64_t{blockIdx.x} * Team::kTeamsInBlock + Team::Team();
  const bool idle = number >= shape.flat_rows * shape.groups;
  const NormPlace place(shape, idle ? 0 : number);
  const bf16* const from = x.Row(place.row, place.item) + place.column;

  float sum = 0;
  Team::ForEachRun(shape.width, [&](int first, int count) {
    float values[kRowVector];
    cuda::LoadRowRun<kAligned>(from + first, count, values);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) sum = __fmaf_rn(values[i], values[i], sum);
  });
  const float mean_square = Team::Fold(sum, shared) / static_cast<float>(shape.width);
  if (idle) return;
  const float r = rsqrtf(mean_square + epsilon);
  if (saved != nullptr && Team::Thread() == 0) saved[place.number] = r;

  bf16* const to = output.Row(place.row, place.item) + place.column;
  const int64_t table_row = kModulated ? *modulation.index.Row(place.row) : 0;
  Team::ForEachRun(shape.width, [&](int first, int count) {
    float values[kRowVector], weights[kRowVector];
    cuda::LoadRowRun<kAligned>(from + first, count, values);
    cuda::LoadRowRun<kAligned>(weight + first, count, weights);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) values[i] = values[i] * r * weights[i];
    if constexpr (kModulated) {
      float scales[kRowVector], shifts[kRowVector];
      cuda::LoadRowRun<kAligned>(modulation.scale.Row(table_row) + first, count, scales);
      cuda::LoadRowRun<kAligned>(modulation.shift.Row(table_row) + first, count, shifts);
#pragma unroll
      for (int i = 0; i < kRowVector; ++i) {
        const float product = RoundThroughBf16(values[i]) * Modulation::Factor(scales[i]);
        values[i] = RoundThroughBf16(product) + shifts[i];
      }
    }
    cuda::StoreRowRun<kAligned>(values, count, to + first);
  });
}

template <int kWarps, bool kAligned, bool kModulated>
__global__ void __launch_bounds__(cuda::kRowWarps* cuda::kWarpSize)
    RmsNormInputGradientKernel(NormShape shape, View<const bf16> x, const bf16* weight,
                               Modulation modulation, const float* saved, View<const bf16> grad,
                               View<bf16> grad_x) {
  using Team = RowTeam<kWarps>;
  __shared__ float shared[cuda::kRowWarps];
  const int64_t number = int64_t{blockIdx.x} * Team::kTeamsInBlock + Team::Team();
  const bool idle = number >= shape.flat_rows * shape.groups;
  const NormPlace place(shape, idle ? 0 : number);
  const bf16* const from = x.Row(place.row, place.item) + place.column;
  const bf16* const g = grad.Row(place.row, place.item) + place.column;
  const int64_t table_row = kModulated ? *modulation.index.Row(place.row) : 0;
  const float r = saved[place.number];

  // xn, and dn weight.
  const auto load = [&](int first, int count, float(&normalised)[kRowVector],
                        float(&weighted)[kRowVector]) {
    float weights[kRowVector];
    cuda::LoadRowRun<kAligned>(from + first, count, normalised);
    cuda::LoadRowRun<kAligned>(g + first, count, weighted);
    cuda::LoadRowRun<kAligned>(weight + first, count, weights);
    if constexpr (kModulated) {
      float scales[kRowVector];
      cuda::LoadRowRun<kAligned>(modulation.scale.Row(table_row) + first, count, scales);
#pragma unroll
      for (int i = 0; i < kRowVector; ++i) {
        weighted[i] = RoundThroughBf16(weighted[i] * Modulation::Factor(scales[i]));
      }
    }
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) {
      normalised[i] *= r;
      weighted[i] *= weights[i];
    }
  };

  float sum = 0;
  Team::ForEachRun(shape.width, [&](int first, int count) {
    float normalised[kRowVector], weighted[kRowVector];
    load(first, count, normalised, weighted);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) sum = __fmaf_rn(weighted[i], normalised[i], sum);
  });
  const float mean = Team::Fold(sum, shared) / static_cast<float>(shape.width);
  if (idle) return;

  bf16* const to = grad_x.Row(place.row, place.item) + place.column;
  Team::ForEachRun(shape.width, [&](int first, int count) {
    float normalised[kRowVector], weighted[kRowVector];
    load(first, count, normalised, weighted);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) weighted[i] = r * (weighted[i] - normalised[i] * mean);
    cuda::StoreRowRun<kAligned>(weighted, count, to + first);
  });
}

// The launches of one call, forward or backward.
class NormLaunch {
 public:
  // `modulation` is null for kRmsNorm.
  NormLaunch(cudaStream_t stream, const Tensor& x, const Tensor& weight,
             const Modulation* modulation, bool aligned)
      : stream_(stream),
        shape_{x.rows, x.batch * x.rows, x.width / weight.width, static_cast<int>(weight.width)},
        x_(x),
        weight_(static_cast<const bf16*>(weight.data)),
        modulated_(modulation != nullptr),
        modulation_(modulated_ ? *modulation : Modulation::None()),
        aligned_(aligned) {}

  absl::Status Forward(float epsilon, float* saved, const Tensor& output) const {
    const View<bf16> to(output);
    return Launch("candidate RMSNorm", [&](auto warps, auto aligned, auto modulated) {
      constexpr int kWarps = decltype(warps)::value;
      RmsNormKernel<kWarps, decltype(aligned)::value, decltype(modulated)::value>
          <<<Blocks(kWarps), cuda::kRowWarps * cuda::kWarpSize, 0, stream_>>>(
              shape_, x_, weight_, modulation_, epsilon, saved, to);
    });
  }

  absl::Status InputGradient(const float* saved, const Tensor& grad, const Tensor& grad_x) const {
    const View<const bf16> from(grad);
    const View<bf16> to(grad_x);
    return Launch("candidate RMSNorm backward", [&](auto warps, auto aligned, auto modulated) {
      constexpr int kWarps = decltype(warps)::value;
      RmsNormInputGradientKernel<kWarps, decltype(aligned)::value, decltype(modulated)::value>
          <<<Blocks(kWarps), cuda::kRowWarps * cuda::kWarpSize, 0, stream_>>>(
              shape_, x_, weight_, modulation_, saved, from, to);
    });
  }

  // `run_sums` holds RunCount(flat rows) * G floats; `in_chunks`: what it reads is aligned to
  // kChunkValues.
  absl::Status WeightGradient(const float* saved, const Tensor& grad, bool in_chunks,
                              float* run_sums, const Tensor& grad_weight) const {
    if (shape_.flat_rows > 0) {
      const absl::Status launched =
          SumWeightRuns(stream_, shape_, x_, modulated_ ? &modulation_ : nullptr, saved,
                        View<const bf16>(grad), in_chunks, run_sums);
      if (!launched.ok()) return launched;
    }
    return AddRuns(stream_, shape_.flat_rows, run_sums, grad_weight);
  }

 private:
  unsigned Blocks(int warps) const {
    const int64_t teams = cuda::kRowWarps / warps;
    return static_cast<unsigned>((shape_.flat_rows * shape_.groups + teams - 1) / teams);
  }

  // Calls launch(warps, aligned, modulated) with the choices as compile-time constants.
  template <typename LaunchKernel>
  absl::Status Launch(const char* name, const LaunchKernel& launch) const {
    if (shape_.flat_rows == 0) return absl::OkStatus();
    const auto choose_modulation = [&](auto warps, auto aligned) {
      if (modulated_) {
        launch(warps, aligned, std::true_type());
      } else {
        launch(warps, aligned, std::false_type());
      }
    };
    const auto choose_alignment = [&](auto warps) {
      if (aligned_) {
        choose_modulation(warps, std::true_type());
      } else {
        choose_modulation(warps, std::false_type());
      }
    };
    if (shape_.width <= cuda::kOneWarpWidth) {
      choose_alignment(std::integral_constant<int, 1>());
    } else {
      choose_alignment(std::integral_constant<int, cuda::kRowWarps>());
    }
    return LaunchStatus(name);
  }

  const cudaStream_t stream_;
  const NormShape shape_;
  const View<const bf16> x_;
  const bf16* const weight_;
  const bool modulated_;
  const Modulation modulation_;
  const bool aligned_;
};

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_RMS_NORM_CUH_
