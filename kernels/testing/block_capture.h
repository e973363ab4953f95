// The 17 nodes of a captured block, ready to be run through an implementation one by one.
#ifndef PLUMBLINE_KERNELS_TESTING_BLOCK_CAPTURE_H_
#define PLUMBLINE_KERNELS_TESTING_BLOCK_CAPTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "kernels/ops.h"

namespace plumbline {

class SafetensorsFile;

// A dense tensor in host memory, 64-byte aligned.
class HostTensor {
 public:
  HostTensor(DType dtype, int64_t batch, int64_t rows, int64_t width);
  const Tensor& view() const { return view_; }

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::unique_ptr<void, Free> memory_;
  Tensor view_;
};

// The tensor `name` of `file` with its bytes, as (batch, rows, width): a vector is one row, and of
// three dimensions and more the first (which must be 1) is the batch and heads are part of the
// width.
absl::StatusOr<HostTensor> ReadHostTensor(const SafetensorsFile& file, absl::string_view name);

// A node with the tensors that the captured run gave it. The views point into the BlockCapture.
struct CapturedNode {
  std::string name;
  OpKind op;
  Attributes attributes;
  std::vector<Tensor> inputs;
  std::vector<Tensor> parameters;
  Tensor output;
  Tensor grad_output;
  // For each input and parameter whether a gradient exists, and what it must be: null where it is
  // one of several parts of a captured sum (BlockCapture::sums). A table's is a strided view.
  std::vector<bool> input_has_gradient;
  std::vector<Tensor> grad_inputs;
  std::vector<Tensor> grad_parameters;
};

// A captured gradient that is the sum of several nodes' input gradients.
struct CapturedSum {
  struct Part {
    std::string node;
    size_t input;
  };
  std::string name;         // "norm1.grad"
  std::vector<Part> parts;  // in the order in which the backward adds them
  Tensor expected;
};

class BlockCapture {
 public:
  // Block 0 of tests/golden/checkpoint as captured in tests/golden/FILE.safetensors:
  // "block0_fp32_cpu" (everything float32 but the parameters, which are bfloat16) or
  // "block0_bf16_cuda". A test needs data = ["//tests/golden:checkpoint",
  // "//tests/golden:captures"].
  static absl::StatusOr<std::unique_ptr<BlockCapture>> Open(absl::string_view file);

  // In execution order.
  const std::vector<CapturedNode>& nodes() const { return nodes_; }
  const CapturedNode& node(absl::string_view name) const;
  const std::vector<CapturedSum>& sums() const { return sums_; }

 private:
  BlockCapture() = default;

  Tensor Keep(const std::string& name, HostTensor tensor);
  absl::Status ReadTensors(absl::string_view file);
  Tensor AddSynthetic(const std::string& name, double scale, DType dtype, DType rounded_to,
                      int64_t rows, int64_t width);
  void AddNodes();
  CapturedNode& AddNode(const std::string& name, OpKind op, std::vector<Tensor> inputs,
                        std::vector<Tensor> grad_inputs,
                        const std::vector<std::string>& parameters);

  std::map<std::string, HostTensor> tensors_;
  std::vector<CapturedNode> nodes_;
  std::vector<CapturedSum> sums_;
};

// What an operation made of a node. Gradients of inputs have the inputs' types; those of parameters
// float32 from a kFloat32 operation, else the parameters' types. A null view's tensor is empty.
struct NodeResult {
  std::unique_ptr<HostTensor> output;
  std::vector<std::unique_ptr<HostTensor>> grad_inputs;  // null where there is none
  std::vector<std::unique_ptr<HostTensor>> grad_parameters;
};

// Runs the node's forward and then its backward from its captured gradient, on a CPU device, with
// saved state and workspace of exactly the sizes asked for. Results begin as NaN bytes.
absl::StatusOr<NodeResult> RunCapturedNode(const Operation& operation, Device& device,
                                           const CapturedNode& node);

// ||reference - x|| / ||reference|| over tensors of one shape, in float64; kBF16 and kF32.
double RelativeL2(const Tensor& reference, const Tensor& x);

// The fraction of values that are equal (0 and -0 are).
double EqualFraction(const Tensor& reference, const Tensor& x);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_TESTING_BLOCK_CAPTURE_H_
