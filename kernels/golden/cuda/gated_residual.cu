// kGatedResidual of the golden.
//
//   x, branch (batch, R, H), gate (1, table rows, H), index (1, R, 1) int64 -> (batch, R, H)
//   forward   y = x + gate[index] branch
//   backward  dx = dy; dbranch = dy gate[index]; per table row, dgate = sum of dy branch
// Rounding: float64 inside, each result once. Order: table_gradient.cuh.
#include "kernels/cuda/gated_residual_operation.cuh"
#include "kernels/golden/cuda/operations.h"
#include "kernels/golden/cuda/table_gradient.cuh"

namespace plumbline::golden_cuda {
namespace {

using cuda::View;

struct GateContribution {
  View<const float> grad;
  View<const float> branch;

  __device__ double operator()(int64_t item, int64_t row, int64_t, int64_t column) const {
    return static_cast<double>(grad.Row(row, item)[column]) * branch.Row(row, item)[column];
  }
};

struct Arithmetic {
  __device__ static float Value(float x, float branch, float gate) {
    return static_cast<float>(x + static_cast<double>(gate) * branch);
  }
  static absl::Status AddGateGradient(cudaStream_t stream, const Tensor& grad, const Tensor& branch,
                                      const Tensor& index, const Tensor& to) {
    return SumIntoTable(stream, grad.batch, index, to,
                        GateContribution{View<const float>(grad), View<const float>(branch)});
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeGatedResidual() {
  return std::make_shared<cuda::GatedResidualOperation<GoldenOperation, float, Arithmetic>>(
      "golden GatedResidual");
}

}  // namespace plumbline::golden_cuda
