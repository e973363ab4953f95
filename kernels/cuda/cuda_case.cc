#include "kernels/cuda/cuda_case.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

// From the first to the last value of the view, gaps included.
int64_t SpanBytes(const Tensor& tensor) {
  if (tensor.NumElements() == 0) return 0;
  const int64_t elements = (tensor.batch - 1) * tensor.batch_stride +
                           (tensor.rows - 1) * tensor.row_stride + tensor.width;
  return elements * static_cast<int64_t>(DTypeSize(tensor.dtype));
}

absl::StatusOr<DeviceBuffer> AllocatePoisoned(Device& device, size_t bytes) {
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer buffer, device.Allocate(bytes));
  const std::vector<uint8_t> poison(bytes, 0xFF);
  PLUMBLINE_RETURN_IF_ERROR(device.CopyToDevice(
      poison.data(), Tensor::Dense(buffer.data(), DType::kU8, 1, 1, static_cast<int64_t>(bytes))));
  return buffer;
}

absl::Status Upload(Device& device, absl::Span<const Tensor> hosts, std::vector<CudaTensor>& memory,
                    std::vector<Tensor>& views) {
  for (const Tensor& host : hosts) {
    PLUMBLINE_ASSIGN_OR_RETURN(CudaTensor tensor, CudaTensor::Upload(device, host));
    views.push_back(tensor.view());
    memory.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

// Results on the device, and where they go to in host memory.
class Results {
 public:
  explicit Results(Device& device) : device_(device) {}

  absl::StatusOr<Tensor> Add(const Tensor& shape, std::unique_ptr<HostTensor>* host) {
    PLUMBLINE_ASSIGN_OR_RETURN(CudaTensor tensor, CudaTensor::Poisoned(device_, shape));
    tensors_.push_back(std::move(tensor));
    hosts_.push_back(host);
    return tensors_.back().view();
  }

  absl::Status Download() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      PLUMBLINE_ASSIGN_OR_RETURN(HostTensor host, tensors_[i].Download(device_));
      *hosts_[i] = std::make_unique<HostTensor>(std::move(host));
    }
    return absl::OkStatus();
  }

 private:
  Device& device_;
  std::vector<CudaTensor> tensors_;
  std::vector<std::unique_ptr<HostTensor>*> hosts_;
};

void ExpectTensorClose(const Tensor& expected, const Tensor& actual, double bound,
                       const std::string& what) {
  if (bound == 0) {
    EXPECT_TRUE(BitwiseEqual(expected, actual)) << what;
  } else {
    EXPECT_LE(RelativeL2(expected, actual), bound) << what;
  }
}

}  // namespace

Device* CudaDeviceForTest() {
  static Device* const device = []() -> Device* {
    absl::StatusOr<std::unique_ptr<Device>> made = MakeCudaDevice(0);
    // Lives as long as the process, like the driver.
    return made.ok() ? made->release() : nullptr;
  }();
  return device;
}

absl::StatusOr<CudaTensor> CudaTensor::Upload(Device& device, const Tensor& host) {
  CudaTensor tensor;
  const int64_t bytes = SpanBytes(host);
  PLUMBLINE_ASSIGN_OR_RETURN(tensor.buffer_, device.Allocate(static_cast<size_t>(bytes)));
  tensor.view_ = host;
  tensor.view_.data = tensor.buffer_.data();
  PLUMBLINE_RETURN_IF_ERROR(device.CopyToDevice(
      host.data, Tensor::Dense(tensor.buffer_.data(), DType::kU8, 1, 1, bytes)));
  return tensor;
}

absl::StatusOr<CudaTensor> CudaTensor::Poisoned(Device& device, const Tensor& shape) {
  CudaTensor tensor;
  tensor.view_ = Tensor::Dense(nullptr, shape.dtype, shape.batch, shape.rows, shape.width);
  PLUMBLINE_ASSIGN_OR_RETURN(tensor.buffer_, AllocatePoisoned(device, tensor.view_.NumBytes()));
  tensor.view_.data = tensor.buffer_.data();
  return tensor;
}

absl::StatusOr<HostTensor> CudaTensor::Download(Device& device) const {
  HostTensor host(view_.dtype, view_.batch, view_.rows, view_.width);
  PLUMBLINE_RETURN_IF_ERROR(device.CopyToHost(view_, host.view().data));
  return host;
}

absl::StatusOr<NodeResult> RunNodeOnCuda(const Operation& operation, Device& device,
                                         const CapturedNode& node) {
  std::vector<CudaTensor> memory;
  std::vector<Tensor> inputs, parameters;
  PLUMBLINE_RETURN_IF_ERROR(Upload(device, node.inputs, memory, inputs));
  PLUMBLINE_RETURN_IF_ERROR(Upload(device, node.parameters, memory, parameters));
  PLUMBLINE_ASSIGN_OR_RETURN(const CudaTensor grad_output,
                             CudaTensor::Upload(device, node.grad_output));
  NodeResult result;
  Results results(device);
  ForwardCall forward;
  forward.inputs = inputs;
  forward.parameters = parameters;
  forward.attributes = node.attributes;
  PLUMBLINE_ASSIGN_OR_RETURN(forward.output, results.Add(node.output, &result.output));
  PLUMBLINE_RETURN_IF_ERROR(operation.Check(forward));

  ExecutionContext context = device.Context();
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer saved,
                             AllocatePoisoned(device, operation.SavedBytes(forward)));
  forward.saved = saved.data();
  PLUMBLINE_ASSIGN_OR_RETURN(
      const DeviceBuffer forward_workspace,
      AllocatePoisoned(device, operation.ForwardWorkspaceBytes(forward, context)));
  context.workspace =
      absl::MakeSpan(static_cast<uint8_t*>(forward_workspace.data()), forward_workspace.bytes());
  PLUMBLINE_RETURN_IF_ERROR(operation.Forward(context, forward));

  BackwardCall backward;
  backward.inputs = inputs;
  backward.parameters = parameters;
  backward.attributes = node.attributes;
  backward.output = forward.output;
  backward.saved = saved.data();
  backward.grad_output = grad_output.view();
  std::vector<Tensor> grad_inputs(inputs.size()), grad_parameters(parameters.size());
  result.grad_inputs.resize(inputs.size());
  result.grad_parameters.resize(parameters.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!node.input_has_gradient[i]) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(grad_inputs[i], results.Add(inputs[i], &result.grad_inputs[i]));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor shape = parameters[i];
    if (operation.precision() == Precision::kFloat32) shape.dtype = DType::kF32;
    PLUMBLINE_ASSIGN_OR_RETURN(grad_parameters[i], results.Add(shape, &result.grad_parameters[i]));
  }
  backward.grad_inputs = grad_inputs;
  backward.grad_parameters = grad_parameters;
  PLUMBLINE_ASSIGN_OR_RETURN(
      const DeviceBuffer backward_workspace,
      AllocatePoisoned(device, operation.BackwardWorkspaceBytes(backward, context)));
  context.workspace =
      absl::MakeSpan(static_cast<uint8_t*>(backward_workspace.data()), backward_workspace.bytes());
  PLUMBLINE_RETURN_IF_ERROR(operation.Backward(context, backward));
  PLUMBLINE_RETURN_IF_ERROR(results.Download());
  return result;
}

void ExpectClose(const CapturedNode& node, const NodeResult& expected, const NodeResult& actual,
                 const ResultBounds& bounds) {
  ExpectTensorClose(expected.output->view(), actual.output->view(), bounds.output,
                    node.name + ", output");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (expected.grad_inputs[i] == nullptr) continue;
    ExpectTensorClose(expected.grad_inputs[i]->view(), actual.grad_inputs[i]->view(),
                      bounds.gradients, node.name + ", gradient of input " + std::to_string(i));
  }
  for (size_t i = 0; i < node.parameters.size(); ++i) {
    ExpectTensorClose(expected.grad_parameters[i]->view(), actual.grad_parameters[i]->view(),
                      bounds.parameters,
                      node.name + ", gradient of parameter " + std::to_string(i));
  }
}

}  // namespace plumbline
