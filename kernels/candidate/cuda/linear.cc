#include "kernels/candidate/cuda/linear.h"

#include <algorithm>

#include "common/status.h"
#include "kernels/candidate/cuda/bf16_product.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/parameter_gradient.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/float32_product.h"

namespace plumbline::candidate_cuda {
namespace {

using cuda::Operand;
using cuda::SummedAxis;

absl::Status Multiply(cudaStream_t stream, DType weight_type, const Operand& left,
                      const Operand& right, const Tensor& bias, const Tensor& output,
                      float* run_sums) {
  return weight_type == DType::kBF16 ? MultiplyBf16(stream, left, right, bias, output, run_sums)
                                     : cuda::MultiplyFloat32(stream, left, right, bias, output);
}

// Floats of scratch for the products of x and of its gradient.
int64_t RunSums(const LinearLayer& layer, bool backward) {
  if (layer.weight.dtype != DType::kBF16) return 0;
  const int64_t forward =
      ProductRunSums({layer.x, SummedAxis::kWidth}, {layer.weight, SummedAxis::kWidth});
  if (!backward) return forward;
  const Tensor grad_output =
      Tensor::Dense(nullptr, DType::kBF16, layer.x.batch, layer.x.rows, layer.weight.rows);
  return std::max(forward, ProductRunSums({grad_output, SummedAxis::kWidth},
                                          {layer.weight, SummedAxis::kRows}));
}

template <typename Call>
LinearLayer LayerOf(const Call& call) {
  return {call.inputs[0], call.parameters[0],
          call.parameters.size() > 1 ? call.parameters[1] : Tensor()};
}

class Linear final : public CandidateOperation {
 public:
  Linear() : CandidateOperation(OpKind::kLinear) {}

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return Bytes(LayerOf(call), false);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Bytes(LayerOf(call), true);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    const LinearScratch scratch(LayerOf(call), false, workspace);
    return scratch.Forward(Stream(context), LayerOf(call), call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    const LinearScratch scratch(LayerOf(call), true, workspace);
    LinearGradients gradients = {call.grad_inputs[0], call.grad_parameters[0], Tensor()};
    if (call.parameters.size() > 1) gradients.bias = call.grad_parameters[1];
    return scratch.Backward(Stream(context), LayerOf(call), call.grad_output, gradients);
  }

 private:
  static size_t Bytes(const LinearLayer& layer, bool backward) {
    cuda::Workspace measure;
    const LinearScratch scratch(layer, backward, measure);
    return measure.bytes();
  }
};

}  // namespace

LinearScratch::LinearScratch(const LinearLayer& layer, bool backward, cuda::Workspace& workspace) {
  const Tensor& x = layer.x;
  rounded_x_ = Tensor::Dense(nullptr, DType::kBF16, x.batch, x.rows, x.width);
  if (x.dtype == DType::kF32 && layer.weight.dtype == DType::kBF16) {
    rounded_x_.data = workspace.Take<uint16_t>(x.NumElements());
  }
  if (backward) bias_sums_ = workspace.Take<float>(RunCount(x.batch * x.rows) * layer.weight.rows);
  run_sums_ = workspace.Take<float>(RunSums(layer, backward));
}

absl::Status LinearScratch::CastInput(cudaStream_t stream, const LinearLayer& layer,
                                      Tensor* x) const {
  *x = layer.x;
  if (rounded_x_.IsNull()) return absl::OkStatus();
  *x = rounded_x_;
  return ConvertOnCuda(stream, layer.x, rounded_x_);
}

absl::Status LinearScratch::Forward(cudaStream_t stream, const LinearLayer& layer,
                                    const Tensor& output) const {
  Tensor x;
  PLUMBLINE_RETURN_IF_ERROR(CastInput(stream, layer, &x));
  return Multiply(stream, layer.weight.dtype, {x, SummedAxis::kWidth},
                  {layer.weight, SummedAxis::kWidth}, layer.bias, output, run_sums_);
}

absl::Status LinearScratch::Backward(cudaStream_t stream, const LinearLayer& layer,
                                     const Tensor& grad_output,
                                     const LinearGradients& gradients) const {
  const DType type = layer.weight.dtype;
  if (!IsOneMatrix(grad_output) || !IsOneMatrix(gradients.x)) {
    return absl::InvalidArgumentError(
        "candidate Linear: the batch items of the gradients must follow one another");
  }
  if (!gradients.x.IsNull()) {
    PLUMBLINE_RETURN_IF_ERROR(Multiply(stream, type, {grad_output, SummedAxis::kWidth},
                                       {layer.weight, SummedAxis::kRows}, Tensor(), gradients.x,
                                       run_sums_));
  }
  if (!gradients.weight.IsNull()) {
    Tensor x;
    PLUMBLINE_RETURN_IF_ERROR(CastInput(stream, layer, &x));
    PLUMBLINE_RETURN_IF_ERROR(Multiply(stream, type, {grad_output, SummedAxis::kRows},
                                       {x, SummedAxis::kRows}, Tensor(), gradients.weight,
                                       nullptr));
  }
  if (gradients.bias.IsNull()) return absl::OkStatus();
  return SumRows(stream, grad_output, bias_sums_, gradients.bias);
}

std::shared_ptr<const Operation> MakeLinear() { return std::make_shared<Linear>(); }

}  // namespace plumbline::candidate_cuda
