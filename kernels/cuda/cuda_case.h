// Running calls on a GPU from tensors in host memory, for tests.
#ifndef PLUMBLINE_KERNELS_CUDA_CUDA_CASE_H_
#define PLUMBLINE_KERNELS_CUDA_CUDA_CASE_H_

#include <gtest/gtest.h>

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {

// The first GPU, made once; null where there is none (then *CudaDeviceForTest() must not be used).
Device* CudaDeviceForTest();

// Ends a test case where there is no GPU.
#define PLUMBLINE_SKIP_WITHOUT_GPU() \
  if (CudaDeviceForTest() == nullptr) GTEST_SKIP() << "no CUDA device"

// A tensor on a GPU with the strides of one in host memory.
class CudaTensor {
 public:
  // A copy of `host`, gaps between its rows included.
  static absl::StatusOr<CudaTensor> Upload(Device& device, const Tensor& host);
  // A dense tensor of the shape and type, filled with 0xFF bytes (NaN).
  static absl::StatusOr<CudaTensor> Poisoned(Device& device, const Tensor& shape);

  const Tensor& view() const { return view_; }
  // The values, as a dense tensor in host memory.
  absl::StatusOr<HostTensor> Download(Device& device) const;

 private:
  CudaTensor() = default;

  DeviceBuffer buffer_;
  Tensor view_;
};

// RunCapturedNode on a GPU: the node's forward, then its backward from its upstream gradient, with
// saved state and workspace of exactly the sizes asked for. Results begin as NaN bytes, and so do
// saved state and workspace.
absl::StatusOr<NodeResult> RunNodeOnCuda(const Operation& operation, Device& device,
                                         const CapturedNode& node);

// What a comparison of two results must give, as relative L2; a bound of 0 asks for the same bytes.
struct ResultBounds {
  double output = 0;
  double gradients = 0;   // of inputs
  double parameters = 0;  // their gradients
};

// Every tensor of `actual` against that of `expected`, as GoogleTest expectations.
void ExpectClose(const CapturedNode& node, const NodeResult& expected, const NodeResult& actual,
                 const ResultBounds& bounds);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_CUDA_CASE_H_
