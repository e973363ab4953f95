#include "kernels/provider/cuda/linear.h"

#include "common/status.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/row_sums.h"
#include "kernels/provider/cuda/gemm.h"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::SummedAxis;

template <typename Call>
LinearLayer LayerOf(const Call& call) {
  return {call.inputs[0], call.parameters[0],
          call.parameters.size() > 1 ? call.parameters[1] : Tensor()};
}

class Linear final : public ProviderOperation {
 public:
  explicit Linear(GemmPath path) : ProviderOperation(OpKind::kLinear), path_(path) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(ProviderOperation::Check(call));
    return CheckGemm();
  }

  size_t ForwardWorkspaceBytes(const ForwardCall& call, const ExecutionContext&) const override {
    return Bytes(LayerOf(call), false);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return Bytes(LayerOf(call), true);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    const LinearScratch scratch(LayerOf(call), false, workspace);
    return scratch.Forward(Stream(context), path_, LayerOf(call), call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    cuda::Workspace workspace(context.workspace);
    const LinearScratch scratch(LayerOf(call), true, workspace);
    LinearGradients gradients = {call.grad_inputs[0], call.grad_parameters[0], Tensor()};
    if (call.parameters.size() > 1) gradients.bias = call.grad_parameters[1];
    return scratch.Backward(Stream(context), path_, LayerOf(call), call.grad_output, gradients);
  }

 private:
  static size_t Bytes(const LinearLayer& layer, bool backward) {
    cuda::Workspace measure;
    const LinearScratch scratch(layer, backward, measure);
    return measure.bytes();
  }

  const GemmPath path_;
};

}  // namespace

LinearScratch::LinearScratch(const LinearLayer& layer, bool backward, cuda::Workspace& workspace) {
  const size_t library_bytes = GemmWorkspaceBytes();
  library_ =
      absl::MakeSpan(workspace.Take<uint8_t>(static_cast<int64_t>(library_bytes)), library_bytes);
  const Tensor& x = layer.x;
  cast_x_ = Tensor::Dense(nullptr, layer.weight.dtype, x.batch, x.rows, x.width);
  cast_grad_x_ = cast_x_;
  if (x.dtype != layer.weight.dtype) {
    const int64_t bytes = static_cast<int64_t>(cast_x_.NumBytes());
    cast_x_.data = workspace.Take<uint8_t>(bytes);
    if (backward) cast_grad_x_.data = workspace.Take<uint8_t>(bytes);
  }
  if (!backward || layer.bias.width == 0) return;
  row_sums_ = workspace.Take<double>(cuda::RowSumValues(
      Tensor::Dense(nullptr, layer.weight.dtype, x.batch, x.rows, layer.weight.rows)));
}

absl::Status LinearScratch::CastInput(cudaStream_t stream, const LinearLayer& layer,
                                      Tensor* x) const {
  *x = layer.x;
  if (cast_x_.IsNull()) return absl::OkStatus();
  *x = cast_x_;
  return ConvertOnCuda(stream, layer.x, cast_x_);
}

absl::Status LinearScratch::Forward(cudaStream_t stream, GemmPath path, const LinearLayer& layer,
                                    const Tensor& output) const {
  Tensor x;
  PLUMBLINE_RETURN_IF_ERROR(CastInput(stream, layer, &x));
  return Multiply(stream, path, {x, SummedAxis::kWidth}, {layer.weight, SummedAxis::kWidth},
                  layer.bias, output, library_);
}

absl::Status LinearScratch::Backward(cudaStream_t stream, GemmPath path, const LinearLayer& layer,
                                     const Tensor& grad_output,
                                     const LinearGradients& gradients) const {
  if (!IsOneMatrix(grad_output) || !IsOneMatrix(gradients.x)) {
    return absl::InvalidArgumentError(
        "provider Linear: the batch items of the gradients must follow one another");
  }
  if (!gradients.x.IsNull()) {
    const bool casts = !cast_grad_x_.IsNull();
    const Tensor& grad_x = casts ? cast_grad_x_ : gradients.x;
    PLUMBLINE_RETURN_IF_ERROR(Multiply(stream, path, {grad_output, SummedAxis::kWidth},
                                       {layer.weight, SummedAxis::kRows}, Tensor(), grad_x,
                                       library_));
    if (casts) PLUMBLINE_RETURN_IF_ERROR(ConvertOnCuda(stream, grad_x, gradients.x));
  }
  if (!gradients.weight.IsNull()) {
    Tensor x;
    PLUMBLINE_RETURN_IF_ERROR(CastInput(stream, layer, &x));
    PLUMBLINE_RETURN_IF_ERROR(Multiply(stream, path, {grad_output, SummedAxis::kRows},
                                       {x, SummedAxis::kRows}, Tensor(), gradients.weight,
                                       library_));
  }
  if (gradients.bias.IsNull()) return absl::OkStatus();
  return cuda::SumAllRows(stream, grad_output, row_sums_, gradients.bias);
}

std::shared_ptr<const Operation> MakeLinear(GemmPath path) {
  return std::make_shared<Linear>(path);
}

}  // namespace plumbline::provider_cuda
