// kResidual and kGradSum of every CUDA family.
//
// kResidual: x, branch (batch, R, W) of one type, bfloat16 or float32. y = round(x + branch); both
// gradients are g. kGradSum: a, b (batch, R, W) of one type, bfloat16 or float32. round(a + b),
// which may be written
//   over a. No backward.
// Reductions: none.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/cuda_operation.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/cuda/shared_operations.h"

namespace plumbline::cuda {
namespace {

template <typename T>
struct SumBody {
  View<const T> a;
  View<const T> b;
  View<T> sum;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float left[kCount], right[kCount];
    LoadRun(a.Row(row, item) + column, left);
    LoadRun(b.Row(row, item) + column, right);
#pragma unroll
    for (int i = 0; i < kCount; ++i) left[i] += right[i];
    StoreRun(left, sum.Row(row, item) + column);
  }
};

template <typename T>
absl::Status AddAs(cudaStream_t stream, const Tensor& a, const Tensor& b, const Tensor& sum) {
  const SumBody<T> body = {View<const T>(a), View<const T>(b), View<T>(sum)};
  return ForEachRun(stream, a.batch, a.rows, a.width, AreAligned(kRun, a, b, sum), body, "sum");
}

absl::Status Add(cudaStream_t stream, const Tensor& a, const Tensor& b, const Tensor& sum) {
  return a.dtype == DType::kBF16 ? AddAs<bf16>(stream, a, b, sum) : AddAs<float>(stream, a, b, sum);
}

class Residual final : public CudaOperation {
 public:
  Residual(absl::string_view implementation, Precision precision)
      : CudaOperation(implementation, precision, OpKind::kResidual) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Add(Stream(context), call.inputs[0], call.inputs[1], call.output);
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

class GradSum final : public CudaOperation {
 public:
  GradSum(absl::string_view implementation, Precision precision)
      : CudaOperation(implementation, precision, OpKind::kGradSum) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return Add(Stream(context), call.inputs[0], call.inputs[1], call.output);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeResidual(absl::string_view implementation,
                                              Precision precision) {
  return std::make_shared<Residual>(implementation, precision);
}
std::shared_ptr<const Operation> MakeGradSum(absl::string_view implementation,
                                             Precision precision) {
  return std::make_shared<GradSum>(implementation, precision);
}

}  // namespace plumbline::cuda
