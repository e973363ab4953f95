#include "kernels/bench/cuda/block_bench.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/bench/cuda/timing.h"
#include "kernels/builtin.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/synthetic.h"

namespace plumbline {
namespace {

constexpr int64_t kHidden = 5376;
constexpr int64_t kHeads = 56;
constexpr int64_t kHeadWidth = 128;
constexpr int64_t kAttentionWidth = kHeads * kHeadWidth;
constexpr int64_t kFfn = 14336;
constexpr int64_t kTimesteps = 3;
constexpr int64_t kModalities = 3;
constexpr int64_t kTimeEmbed = 2688;
constexpr int64_t kTableWidth = kModalities * 6 * kHidden;
constexpr int64_t kRowCounts[] = {264, 925, 3160, 38912};
constexpr size_t kRotatedBytes = size_t{200} << 20;

// One node of a block: its shapes, and the work that its time is measured against.
struct BenchNode {
  std::string name;
  OpKind op;
  std::vector<Tensor> inputs;  // shapes; index inputs are int64, positions float64
  std::vector<Tensor> parameters;
  Tensor output;
  double forward_flops = 0;  // 0: measured by bytes
  double backward_flops = 0;
};

Tensor Shape(DType dtype, int64_t rows, int64_t width) {
  return Tensor::Dense(nullptr, dtype, 1, rows, width);
}
Tensor Bf16(int64_t rows, int64_t width) { return Shape(DType::kBF16, rows, width); }

std::vector<BenchNode> BlockNodes(int64_t rows) {
  const Tensor hidden = Bf16(rows, kHidden);
  const Tensor heads = Bf16(rows, kAttentionWidth);
  const Tensor table = Bf16(kTimesteps * kModalities, kHidden);
  const Tensor index = Shape(DType::kI64, rows, 1);
  const auto linear = [&](const char* name, int64_t inputs, int64_t outputs) {
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(inputs) *
                         static_cast<double>(outputs);
    return BenchNode{
        name,  OpKind::kLinear, {Bf16(rows, inputs)}, {Bf16(outputs, inputs)}, Bf16(rows, outputs),
        flops, 2 * flops};
  };
  const double attention = 4.0 * static_cast<double>(rows) * static_cast<double>(rows) *
                           static_cast<double>(kAttentionWidth);
  return {
      {"adaln_projection",
       OpKind::kAdalnProjection,
       {Shape(DType::kF32, kTimesteps, kTimeEmbed)},
       {Bf16(kTableWidth, kTimeEmbed), Bf16(1, kTableWidth)},
       Bf16(kTimesteps, kTableWidth),
       2.0 * kTimesteps * kTimeEmbed * kTableWidth,
       4.0 * kTimesteps * kTimeEmbed * kTableWidth},
      {"norm1",
       OpKind::kModulatedRmsNorm,
       {hidden, table, table, index},
       {Bf16(1, kHidden)},
       hidden},
      linear("q_proj", kHidden, kAttentionWidth),
      {"q_norm", OpKind::kRmsNorm, {heads}, {Bf16(1, kHeadWidth)}, heads},
      {"rope_q", OpKind::kRope, {heads, Shape(DType::kF64, rows, 3)}, {}, heads},
      {"attention",
       OpKind::kAttention,
       {heads, heads, heads},
       {},
       heads,
       attention,
       2.5 * attention},
      linear("o_proj", kAttentionWidth, kHidden),
      {"residual_attn", OpKind::kGatedResidual, {hidden, hidden, table, index}, {}, hidden},
      linear("ffn_gate_up", kHidden, 2 * kFfn),
      {"swiglu", OpKind::kSwiGlu, {Bf16(rows, 2 * kFfn)}, {}, Bf16(rows, kFfn)},
      linear("ffn_down", kFfn, kHidden),
  };
}

// Device memory of one call, and the call on it.
class BenchCall {
 public:
  static absl::StatusOr<std::unique_ptr<BenchCall>> Make(Device& device, const Operation& operation,
                                                         const BenchNode& node) {
    auto call = std::make_unique<BenchCall>();
    PLUMBLINE_RETURN_IF_ERROR(call->Prepare(device, operation, node));
    return call;
  }

  absl::Status Run(const Operation& operation, bool backward) {
    return backward ? operation.Backward(context_, backward_)
                    : operation.Forward(context_, forward_);
  }
  size_t bytes() const { return bytes_; }
  // What a run writes.
  std::vector<Tensor> Results(bool backward) const {
    if (!backward) return {forward_.output};
    std::vector<Tensor> results;
    for (const std::vector<Tensor>* gradients : {&grad_inputs_, &grad_parameters_}) {
      for (const Tensor& gradient : *gradients) {
        if (!gradient.IsNull()) results.push_back(gradient);
      }
    }
    return results;
  }

 private:
  absl::Status Prepare(Device& device, const Operation& operation, const BenchNode& node) {
    context_ = device.Context();
    for (const Tensor& shape : node.inputs) {
      PLUMBLINE_ASSIGN_OR_RETURN(Tensor tensor, Fill(device, shape));
      inputs_.push_back(tensor);
    }
    for (const Tensor& shape : node.parameters) {
      PLUMBLINE_ASSIGN_OR_RETURN(Tensor tensor, Fill(device, shape));
      parameters_.push_back(tensor);
    }
    forward_.inputs = inputs_;
    forward_.parameters = parameters_;
    forward_.attributes.epsilon = 1e-5f;
    forward_.attributes.head_width = kHeadWidth;
    forward_.attributes.rotary_frequencies = 16;
    forward_.attributes.rotary_theta = 10000;
    PLUMBLINE_ASSIGN_OR_RETURN(forward_.output, Fill(device, node.output));
    PLUMBLINE_RETURN_IF_ERROR(operation.Check(forward_));
    PLUMBLINE_ASSIGN_OR_RETURN(forward_.saved, Take(device, operation.SavedBytes(forward_)));
    backward_.inputs = inputs_;
    backward_.parameters = parameters_;
    backward_.attributes = forward_.attributes;
    backward_.output = forward_.output;
    backward_.saved = forward_.saved;
    PLUMBLINE_ASSIGN_OR_RETURN(backward_.grad_output, Fill(device, node.output));
    for (const Tensor& shape : node.inputs) {
      const bool differentiable = shape.dtype == DType::kBF16 || shape.dtype == DType::kF32;
      grad_inputs_.emplace_back();
      if (!differentiable) continue;
      PLUMBLINE_ASSIGN_OR_RETURN(grad_inputs_.back(), Fill(device, shape));
    }
    for (const Tensor& shape : node.parameters) {
      grad_parameters_.emplace_back();
      PLUMBLINE_ASSIGN_OR_RETURN(grad_parameters_.back(), Fill(device, shape));
    }
    backward_.grad_inputs = grad_inputs_;
    backward_.grad_parameters = grad_parameters_;
    const size_t workspace = std::max(operation.ForwardWorkspaceBytes(forward_, context_),
                                      operation.BackwardWorkspaceBytes(backward_, context_));
    PLUMBLINE_ASSIGN_OR_RETURN(void* const memory, Take(device, workspace));
    context_.workspace = absl::MakeSpan(static_cast<uint8_t*>(memory), workspace);
    return absl::OkStatus();
  }

  absl::StatusOr<void*> Take(Device& device, size_t bytes) {
    PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer buffer, device.Allocate(bytes));
    bytes_ += bytes;
    buffers_.push_back(std::move(buffer));
    return buffers_.back().data();
  }

  absl::StatusOr<Tensor> Fill(Device& device, const Tensor& shape) {
    Tensor tensor = shape;
    PLUMBLINE_ASSIGN_OR_RETURN(tensor.data, Take(device, shape.NumBytes()));
    if (shape.dtype == DType::kI64) {
      std::vector<int64_t> index(shape.rows);
      for (int64_t row = 0; row < shape.rows; ++row) {
        index[row] = row * kTimesteps * kModalities / shape.rows;
      }
      PLUMBLINE_RETURN_IF_ERROR(device.CopyToDevice(index.data(), tensor));
    } else if (shape.dtype == DType::kF64) {
      std::vector<double> positions(shape.NumElements());
      for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<double>(i) / 7;
      PLUMBLINE_RETURN_IF_ERROR(device.CopyToDevice(positions.data(), tensor));
    } else {
      PLUMBLINE_RETURN_IF_ERROR(FillSyntheticOnCuda(static_cast<cudaStream_t>(context_.stream),
                                                    absl::StrCat("bench.", buffers_.size()), 1,
                                                    {1, 0}, tensor));
    }
    return tensor;
  }

  ExecutionContext context_;
  std::vector<DeviceBuffer> buffers_;
  size_t bytes_ = 0;
  std::vector<Tensor> inputs_, parameters_, grad_inputs_, grad_parameters_;
  ForwardCall forward_;
  BackwardCall backward_;
};

double MovedBytes(const BenchNode& node, bool backward) {
  double bytes = static_cast<double>(node.output.NumBytes());
  for (const Tensor& input : node.inputs) {
    bytes +=
        static_cast<double>(input.NumBytes()) * (backward && input.dtype == DType::kBF16 ? 2 : 1);
  }
  return bytes;
}

// Runs the forward or the backward twice from the same inputs.
absl::Status CheckRepeat(Device& device, const Operation& operation, BenchCall& call,
                         const BenchNode& node, bool backward) {
  const cudaStream_t stream = static_cast<cudaStream_t>(device.Context().stream);
  const std::vector<Tensor> results = call.Results(backward);
  std::vector<DeviceBuffer> first;
  PLUMBLINE_RETURN_IF_ERROR(call.Run(operation, backward));
  for (const Tensor& result : results) {
    PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer copy, device.Allocate(result.NumBytes()));
    cudaMemcpyAsync(copy.data(), result.data, result.NumBytes(), cudaMemcpyDeviceToDevice, stream);
    cudaMemsetAsync(result.data, 0xFF, result.NumBytes(), stream);
    first.push_back(std::move(copy));
  }
  PLUMBLINE_RETURN_IF_ERROR(call.Run(operation, backward));
  for (size_t i = 0; i < results.size(); ++i) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        const bool same,
        SameBytesOnDevice(stream, first[i].data(), results[i].data, results[i].NumBytes()));
    if (same) continue;
    return absl::InternalError(absl::StrCat(node.name, backward ? " backward" : "",
                                            ": its bytes change when it is repeated"));
  }
  return absl::OkStatus();
}

nlohmann::json Report(const BenchNode& node, int64_t rows, bool backward, const Timing& timing) {
  const double flops = backward ? node.backward_flops : node.forward_flops;
  const double rate = flops > 0 ? flops / (timing.median_ms * 1e9)
                                : MovedBytes(node, backward) / (timing.median_ms * 1e6);
  const char* const unit = flops > 0 ? "TFLOP/s" : "GB/s";
  const char* const direction = backward ? "backward" : "forward";
  std::printf("%6lld %-16s %-8s %10.4f ms [%.4f, %.4f] %9.1f %s\n", static_cast<long long>(rows),
              node.name.c_str(), direction, timing.median_ms, timing.least_ms, timing.most_ms, rate,
              unit);
  std::fflush(stdout);
  return {{"rows", rows},
          {"node", node.name},
          {"direction", direction},
          {"median_ms", timing.median_ms},
          {"least_ms", timing.least_ms},
          {"most_ms", timing.most_ms},
          {"rate", rate},
          {"unit", unit}};
}

// Bytes read and written a second by a device's own copy, in GB.
absl::StatusOr<double> CopyBandwidth(Device& device) {
  constexpr size_t kBytes = size_t{2} << 30;
  const cudaStream_t stream = static_cast<cudaStream_t>(device.Context().stream);
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer from, device.Allocate(kBytes));
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer to, device.Allocate(kBytes));
  PLUMBLINE_ASSIGN_OR_RETURN(const Timing timing, TimeOnStream(stream, [&](int) {
                               return CudaStatus(cudaMemcpyAsync(to.data(), from.data(), kBytes,
                                                                 cudaMemcpyDeviceToDevice, stream),
                                                 "copy");
                             }));
  return 2.0 * kBytes / (timing.median_ms * 1e6);
}

}  // namespace

absl::Status BenchNodes(const std::string& implementation, nlohmann::json& results) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, MakeCudaDevice(0));
  const cudaStream_t stream = static_cast<cudaStream_t>(device->Context().stream);
  Registry registry;
  RegisterCandidateCuda(registry);
  RegisterProviderCuda(registry);
  PLUMBLINE_ASSIGN_OR_RETURN(const double copy_gb_s, CopyBandwidth(*device));
  std::printf("%s, %s; a copy moves %.0f GB/s\n", device->DeviceClass().c_str(),
              implementation.c_str(), copy_gb_s);
  results["device_class"] = device->DeviceClass();
  results["implementation"] = implementation;
  results["copy_gb_s"] = copy_gb_s;
  results["nodes"] = nlohmann::json::array();
  for (const int64_t rows : kRowCounts) {
    for (const BenchNode& node : BlockNodes(rows)) {
      PLUMBLINE_ASSIGN_OR_RETURN(
          const OperationRegistration* const registration,
          registry.Find(implementation, node.op, node.name, DeviceKind::kCuda));
      const Operation& operation = *registration->operation;
      std::vector<std::unique_ptr<BenchCall>> calls;
      size_t bytes = 0;
      do {
        PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<BenchCall> call,
                                   BenchCall::Make(*device, operation, node));
        bytes += call->bytes();
        calls.push_back(std::move(call));
      } while (bytes < kRotatedBytes);
      PLUMBLINE_RETURN_IF_ERROR(CheckRepeat(*device, operation, *calls[0], node, false));
      // The provider adds gradients of tables by atomics, as PyTorch does.
      if (registration->status != BindingStatus::kReference) {
        PLUMBLINE_RETURN_IF_ERROR(CheckRepeat(*device, operation, *calls[0], node, true));
      }
      // A backward reads what its call's forward saved.
      for (const auto& call : calls) PLUMBLINE_RETURN_IF_ERROR(call->Run(operation, false));
      for (const bool backward : {false, true}) {
        const auto enqueue = [&](int run) {
          return calls[static_cast<size_t>(run) % calls.size()]->Run(operation, backward);
        };
        PLUMBLINE_ASSIGN_OR_RETURN(const Timing timing, TimeOnStream(stream, enqueue));
        results["nodes"].push_back(Report(node, rows, backward, timing));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace plumbline
