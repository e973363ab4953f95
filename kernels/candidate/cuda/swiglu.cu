// kSwiGlu of the candidate.
//
// Shapes: gate_up (batch, R, 2 F) bfloat16, value a in the first half, gate b in the second; output
// (batch, R, F).
// Rounding points: s = round(SiLU(b)), SiLU in float32; y = round(a s).
// Backward of g: da = round(g s); ds = round(g a); db = round(ds SiLU'(b)), SiLU' in float32.
// Reductions: none. The bytes are those of the candidate on a CPU.
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/elementary.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
using cuda::View;

struct ForwardBody {
  View<const bf16> gate_up;
  View<bf16> output;
  int64_t width;  // F

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const bf16* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) a[i] *= RoundThroughBf16(cuda::Silu(b[i]));
    cuda::StoreRun(a, output.Row(row, item) + column);
  }
};

constexpr int kSwiGluThreads = 256;
constexpr int kChunksOfThread = 2;  // so that their loads overlap

// The forward where everything is aligned to chunks, which are counted over all rows.
__global__ void __launch_bounds__(kSwiGluThreads)
    SwiGluChunksKernel(View<const bf16> gate_up, View<bf16> output, unsigned chunks_of_row,
                       int64_t chunks) {
  Chunk a[kChunksOfThread], b[kChunksOfThread];
  bf16* to[kChunksOfThread];
  const int64_t first = int64_t{blockIdx.x} * kChunksOfThread * kSwiGluThreads + threadIdx.x;
  bool is_plain = true;
#pragma unroll
  for (int i = 0; i < kChunksOfThread; ++i) {
    const int64_t number = first + i * kSwiGluThreads;
    to[i] = nullptr;
    if (number >= chunks) continue;
    const int64_t flat_row = number / chunks_of_row;
    const int64_t column = (number - flat_row * chunks_of_row) * kChunkValues;
    const bf16* const from = gate_up.FlatRow(flat_row) + column;
    a[i] = LoadChunkOnce(from);
    b[i] = LoadChunkOnce(from + int64_t{chunks_of_row} * kChunkValues);
    to[i] = output.FlatRow(flat_row) + column;
  }
#pragma unroll
  for (int i = 0; i < kChunksOfThread; ++i) {
    if (to[i] == nullptr) continue;
#pragma unroll
    for (int j = 0; j < kChunkValues; ++j) is_plain &= cuda::IsPlain(cuda::Widen(b[i].values[j]));
  }
  const auto multiply = [&](auto silu) {
#pragma unroll
    for (int i = 0; i < kChunksOfThread; ++i) {
      if (to[i] == nullptr) continue;
      float values[kChunkValues];
      WidenChunk(a[i], values);
#pragma unroll
      for (int j = 0; j < kChunkValues; ++j) {
        values[j] *= RoundThroughBf16(silu(cuda::Widen(b[i].values[j])));
      }
      StoreChunk(RoundChunk(values), to[i]);
    }
  };
  if (is_plain) {
    multiply([](float x) { return cuda::PlainSilu(x); });
  } else {
    multiply([](float x) { return cuda::Silu(x); });
  }
}

absl::Status SwiGluChunks(cudaStream_t stream, const Tensor& gate_up, const Tensor& output) {
  const int64_t chunks_of_row = output.width / kChunkValues;
  const int64_t chunks = output.batch * output.rows * chunks_of_row;
  if (chunks == 0) return absl::OkStatus();
  constexpr int64_t kChunksOfBlock = kChunksOfThread * kSwiGluThreads;
  SwiGluChunksKernel<<<static_cast<unsigned>((chunks + kChunksOfBlock - 1) / kChunksOfBlock),
                       kSwiGluThreads, 0, stream>>>(View<const bf16>(gate_up), View<bf16>(output),
                                                    static_cast<unsigned>(chunks_of_row), chunks);
  return LaunchStatus("candidate SwiGLU");
}

struct BackwardBody {
  View<const bf16> gate_up;
  View<const bf16> grad;
  View<bf16> grad_gate_up;
  int64_t width;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const bf16* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount], g[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
    cuda::LoadRun(grad.Row(row, item) + column, g);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float ds = RoundThroughBf16(g[i] * a[i]);
      a[i] = g[i] * RoundThroughBf16(cuda::Silu(b[i]));
      b[i] = ds * cuda::SiluDerivative(b[i]);
    }
    bf16* const to = grad_gate_up.Row(row, item) + column;
    cuda::StoreRun(a, to);
    cuda::StoreRun(b, to + width);
  }
};

class SwiGlu final : public CandidateOperation {
 public:
  SwiGlu() : CandidateOperation(OpKind::kSwiGlu) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& output = call.output;
    if (cuda::AreAligned(kChunkValues, gate_up, output)) {
      return SwiGluChunks(Stream(context), gate_up, output);
    }
    const ForwardBody body = {View<const bf16>(gate_up), View<bf16>(output), output.width};
    return cuda::ForEachRun(Stream(context), output.batch, output.rows, output.width, false, body,
                            "candidate SwiGlu");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& grad_gate_up = call.grad_inputs[0];
    const Tensor& grad = call.grad_output;
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    const BackwardBody body = {View<const bf16>(gate_up), View<const bf16>(grad),
                               View<bf16>(grad_gate_up), grad.width};
    return cuda::ForEachRun(Stream(context), grad.batch, grad.rows, grad.width,
                            cuda::AreAligned(cuda::kRun, gate_up, grad, grad_gate_up), body,
                            "candidate SwiGlu backward");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::candidate_cuda
