// kRope of the candidate.
//
// Shapes: x (batch, R, heads * D) bfloat16; position_ids (1, R, 3) float64; output like x.
// Rounding points: inv_freq = 1 / theta^(2j / 2F), exponent, power and reciprocal each rounded to
// float32; angle = float32(position) * inv_freq in float32, cos and sin of it CUDA's cosf and sinf
// (as PyTorch's, since a value beside a tie of bfloat16 must fall on the same side), rounded to
// bfloat16; over the first 6 F channels of a head, x1 and x2 the halves,
//   y1 = round(round(x1 cos) + round(-x2 sin)),  y2 = round(round(x2 cos) + round(x1 sin));
// the other channels are copied.
// Backward of g: the transpose with the same rounding points,
//   dx1 = round(round(g1 cos) + round(g2 sin)),  dx2 = round(round(g2 cos) + round(-g1 sin)).
// Reductions: none.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/candidate/cuda/head_rows.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rotary_frequencies.h"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
using cuda::View;

constexpr int kAxes = 3;

// For each row the 3 F cosines and then the 3 F sines of its angles (frequencies of the first axis,
// of the second, of the third), rounded through bfloat16. A block is a row.
__global__ void FillTableKernel(View<const double> positions, cuda::RotaryFrequencies frequencies,
                                float* table) {
  const int64_t row = blockIdx.x;
  const int half = kAxes * frequencies.count;
  float* const cosines = table + row * 2 * half;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float position = static_cast<float>(positions.Row(row)[i / frequencies.count]);
    const float angle = position * frequencies.inverse[i % frequencies.count];
    cosines[i] = RoundThroughBf16(cosf(angle));
    cosines[half + i] = RoundThroughBf16(sinf(angle));
  }
}

// Rotates by the angles, or for the transpose by their negatives (`sine_sign` -1: negating a factor
// before a rounding to nearest negates the product exactly). A block is a row of one item; kCount
// divides half, D and the alignment of every row.
template <int kCount>
__global__ void __launch_bounds__(256)
    RotateKernel(View<const bf16> from, int64_t flat_rows, int heads, int head_width, int half,
                 const float* table, float sine_sign, View<bf16> to) {
  const int runs_of_head = (head_width - half) / kCount;  // pairs of channels, then single ones
  for (int64_t flat = blockIdx.x; flat < flat_rows; flat += gridDim.x) {
    const int64_t item = flat / from.rows;
    const int64_t row = flat % from.rows;
    const float* const cosines = table + row * 2 * half;
    for (int run = threadIdx.x; run < heads * runs_of_head; run += blockDim.x) {
      const int64_t head = int64_t{run / runs_of_head} * head_width;
      const int channel = run % runs_of_head * kCount;
      const bf16* const x = from.Row(row, item) + head;
      bf16* const y = to.Row(row, item) + head;
      float x1[kCount], x2[kCount];
      if (channel >= half) {
        cuda::LoadRun(x + half + channel, x1);
        cuda::StoreRun(x1, y + half + channel);
        continue;
      }
      cuda::LoadRun(x + channel, x1);
      cuda::LoadRun(x + half + channel, x2);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float c = cosines[channel + i];
        const float s = sine_sign * cosines[half + channel + i];
        const float y1 = RoundThroughBf16(x1[i] * c) + RoundThroughBf16(-x2[i] * s);
        x2[i] = RoundThroughBf16(x2[i] * c) + RoundThroughBf16(x1[i] * s);
        x1[i] = y1;
      }
      cuda::StoreRun(x1, y + channel);
      cuda::StoreRun(x2, y + half + channel);
    }
  }
}

class Rope final : public CandidateOperation {
 public:
  Rope() : CandidateOperation(OpKind::kRope) {}

  absl::Status Check(const ForwardCall& call) const override {
    const absl::Status checked = CandidateOperation::Check(call);
    return checked.ok() ? cuda::CheckRotaryFrequencies("candidate Rope", call.attributes) : checked;
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return TableBytes(call.inputs[0].rows, call.attributes);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return TableBytes(call.inputs[0].rows, call.attributes);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Rotate(context, call.inputs[0], call.inputs[1], call.attributes, 1.0f, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    return Rotate(context, call.grad_output, call.inputs[1], call.attributes, -1.0f,
                  call.grad_inputs[0]);
  }

 private:
  static size_t TableBytes(int64_t rows, const Attributes& attributes) {
    return static_cast<size_t>(rows * 2 * kAxes * attributes.rotary_frequencies) * sizeof(float);
  }

  static absl::Status Rotate(const ExecutionContext& context, const Tensor& from,
                             const Tensor& positions, const Attributes& attributes, float sine_sign,
                             const Tensor& to) {
    if (from.batch * from.rows == 0) return absl::OkStatus();
    const HeadRows head_rows = {from, Tensor(), nullptr, Tensor(), to};
    if (TakesHeadRows(head_rows, attributes.head_width, attributes.rotary_frequencies)) {
      return RunHeadRows(Stream(context), head_rows, nullptr, positions, attributes, sine_sign);
    }
    float* const table = reinterpret_cast<float*>(context.workspace.data());
    const int half = static_cast<int>(kAxes * attributes.rotary_frequencies);
    if (half > 0) {
      FillTableKernel<<<static_cast<unsigned>(from.rows), 64, 0, Stream(context)>>>(
          View<const double>(positions), cuda::MakeRotaryFrequencies(attributes), table);
      const absl::Status filled = LaunchStatus("candidate rotary table");
      if (!filled.ok()) return filled;
    }
    const int head_width = static_cast<int>(attributes.head_width);
    const int heads = static_cast<int>(from.width / head_width);
    const int64_t flat_rows = from.batch * from.rows;
    const unsigned blocks = static_cast<unsigned>(std::min(flat_rows, cuda::kMostBlocks));
    const bool aligned = cuda::AreAligned(cuda::kRun, from, to) && half % cuda::kRun == 0 &&
                         head_width % cuda::kRun == 0;
    const auto launch = aligned ? RotateKernel<cuda::kRun> : RotateKernel<1>;
    launch<<<blocks, 256, 0, Stream(context)>>>(View<const bf16>(from), flat_rows, heads,
                                                head_width, half, table, sine_sign, View<bf16>(to));
    return LaunchStatus("candidate Rope");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() { return std::make_shared<Rope>(); }

}  // namespace plumbline::candidate_cuda
