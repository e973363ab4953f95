#include "kernels/golden/cuda/linear.h"

#include "common/status.h"
#include "kernels/cuda/float32_product.h"
#include "kernels/cuda/row_sums.h"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

using cuda::SummedAxis;

template <typename Call>
LinearLayer LayerOf(const Call& call) {
  return {call.inputs[0], call.parameters[0],
          call.parameters.size() > 1 ? call.parameters[1] : Tensor()};
}

class Linear final : public GoldenOperation {
 public:
  Linear() : GoldenOperation(OpKind::kLinear) {}

  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return static_cast<size_t>(LinearBackwardValues(LayerOf(call))) * sizeof(double);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return LinearForward(Stream(context), LayerOf(call), call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    LinearGradients gradients = {call.grad_inputs[0], call.grad_parameters[0], Tensor()};
    if (call.parameters.size() > 1) gradients.bias = call.grad_parameters[1];
    return LinearBackward(Stream(context), LayerOf(call), call.grad_output, gradients,
                          reinterpret_cast<double*>(context.workspace.data()));
  }
};

}  // namespace

absl::Status LinearForward(cudaStream_t stream, const LinearLayer& layer, const Tensor& output) {
  return cuda::MultiplyFloat32(stream, {layer.x, SummedAxis::kWidth},
                               {layer.weight, SummedAxis::kWidth}, layer.bias, output);
}

absl::Status LinearBackward(cudaStream_t stream, const LinearLayer& layer,
                            const Tensor& grad_output, const LinearGradients& gradients,
                            double* row_sums) {
  if (!IsOneMatrix(grad_output) || !IsOneMatrix(gradients.x)) {
    return absl::InvalidArgumentError(
        "golden Linear: the batch items of the gradients must follow one another");
  }
  if (!gradients.x.IsNull()) {
    PLUMBLINE_RETURN_IF_ERROR(cuda::MultiplyFloat32(stream, {grad_output, SummedAxis::kWidth},
                                                    {layer.weight, SummedAxis::kRows}, Tensor(),
                                                    gradients.x));
  }
  if (!gradients.weight.IsNull()) {
    PLUMBLINE_RETURN_IF_ERROR(cuda::MultiplyFloat32(stream, {grad_output, SummedAxis::kRows},
                                                    {layer.x, SummedAxis::kRows}, Tensor(),
                                                    gradients.weight));
  }
  if (gradients.bias.IsNull()) return absl::OkStatus();
  return cuda::SumAllRows(stream, grad_output, row_sums, gradients.bias);
}

int64_t LinearBackwardValues(const LinearLayer& layer) {
  if (layer.bias.width == 0) return 0;
  return cuda::RowSumValues(
      Tensor::Dense(nullptr, DType::kF32, layer.x.batch, layer.x.rows, layer.weight.rows));
}

std::shared_ptr<const Operation> MakeLinear() { return std::make_shared<Linear>(); }

}  // namespace plumbline::golden_cuda
