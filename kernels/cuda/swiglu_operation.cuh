// kSwiGlu in an implementation's own arithmetic: what golden and provider share of it.
//
//   gate_up (batch, R, 2 F) of T: value a, then gate b -> (batch, R, F)
//
// Arithmetic has, for float values that a store of T rounds:
//   Value(a, b)            the output
//   Gradients(g, &a, &b)   the gradients of a and b for one of the output, in their place
#ifndef PLUMBLINE_KERNELS_CUDA_SWIGLU_OPERATION_CUH_
#define PLUMBLINE_KERNELS_CUDA_SWIGLU_OPERATION_CUH_

#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/ops.h"

namespace plumbline::cuda {

template <typename T, typename Arithmetic>
struct SwiGluForwardBody {
  View<const T> gate_up;
  View<T> output;
  int64_t width;  // F

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const T* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount];
    LoadRun(from, a);
    LoadRun(from + width, b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) a[i] = Arithmetic::Value(a[i], b[i]);
    StoreRun(a, output.Row(row, item) + column);
  }
};

template <typename T, typename Arithmetic>
struct SwiGluBackwardBody {
  View<const T> gate_up;
  View<const T> grad;
  View<T> grad_gate_up;
  int64_t width;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const T* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount], g[kCount];
    LoadRun(from, a);
    LoadRun(from + width, b);
    LoadRun(grad.Row(row, item) + column, g);
#pragma unroll
    for (int i = 0; i < kCount; ++i) Arithmetic::Gradients(g[i], &a[i], &b[i]);
    T* const to = grad_gate_up.Row(row, item) + column;
    StoreRun(a, to);
    StoreRun(b, to + width);
  }
};

// Base is the family's, made with an OpKind. `name` stands in errors and must outlive the
// operation.
template <typename Base, typename T, typename Arithmetic>
class SwiGluOperation final : public Base {
 public:
  explicit SwiGluOperation(const char* name) : Base(OpKind::kSwiGlu), name_(name) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& output = call.output;
    const SwiGluForwardBody<T, Arithmetic> body = {View<const T>(gate_up), View<T>(output),
                                                   output.width};
    return ForEachRun(Base::Stream(context), output.batch, output.rows, output.width,
                      AreAligned(kRun, gate_up, output), body, name_);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& grad_gate_up = call.grad_inputs[0];
    const Tensor& grad = call.grad_output;
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    const SwiGluBackwardBody<T, Arithmetic> body = {View<const T>(gate_up), View<const T>(grad),
                                                    View<T>(grad_gate_up), grad.width};
    return ForEachRun(Base::Stream(context), grad.batch, grad.rows, grad.width,
                      AreAligned(kRun, gate_up, grad, grad_gate_up), body, name_);
  }

 private:
  const char* const name_;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_SWIGLU_OPERATION_CUH_
