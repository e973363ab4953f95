// kResidual and kGradSum of the candidate.
//
// kResidual: x, branch (batch, R, W) bfloat16. y = round(x + branch); both gradients are g.
// kGradSum: a, b (batch, R, W) of one type, bfloat16 or float32. round(a + b), which may be written
//   over a. No backward.
// Reductions: none.
#include "kernels/candidate/cuda/operations.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::View;

template <typename T>
struct SumBody {
  View<const T> a;
  View<const T> b;
  View<T> sum;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float left[kCount], right[kCount];
    cuda::LoadRun(a.Row(row, item) + column, left);
    cuda::LoadRun(b.Row(row, item) + column, right);
#pragma unroll
    for (int i = 0; i < kCount; ++i) left[i] += right[i];
    cuda::StoreRun(left, sum.Row(row, item) + column);
  }
};

template <typename T>
absl::Status Add(cudaStream_t stream, const Tensor& a, const Tensor& b, const Tensor& sum) {
  const SumBody<T> body = {View<const T>(a), View<const T>(b), View<T>(sum)};
  return cuda::ForEachRun(stream, a.batch, a.rows, a.width, cuda::AreAligned(cuda::kRun, a, b, sum),
                          body, "candidate sum");
}

class Residual final : public CandidateOperation {
 public:
  Residual() : CandidateOperation(OpKind::kResidual) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Add<bf16>(Stream(context), call.inputs[0], call.inputs[1], call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (const Tensor& to : call.grad_inputs) {
      if (to.IsNull()) continue;
      const absl::Status copied = ConvertOnCuda(Stream(context), call.grad_output, to);
      if (!copied.ok()) return copied;
    }
    return absl::OkStatus();
  }
};

class GradSum final : public CandidateOperation {
 public:
  GradSum() : CandidateOperation(OpKind::kGradSum) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& a = call.inputs[0];
    return a.dtype == DType::kBF16 ? Add<bf16>(Stream(context), a, call.inputs[1], call.output)
                                   : Add<float>(Stream(context), a, call.inputs[1], call.output);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeResidual() { return std::make_shared<Residual>(); }
std::shared_ptr<const Operation> MakeGradSum() { return std::make_shared<GradSum>(); }

}  // namespace plumbline::candidate_cuda
