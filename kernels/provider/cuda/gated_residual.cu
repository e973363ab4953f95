// kGatedResidual of the provider.
//
//   x, branch (batch, R, H), gate (1, table rows, H) bfloat16, index (1, R, 1) int64
//             -> (batch, R, H)
//   forward   round(x + round(gate[index] branch))
//   backward  of g: dx = g; dbranch = round(g gate[index]); dgate[index] += round(g branch)
// Reductions: table_gradient.cuh.
#include "kernels/cuda/gated_residual_operation.cuh"
#include "kernels/provider/cuda/operations.h"
#include "kernels/provider/cuda/table_gradient.cuh"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::View;

struct GateContribution {
  View<const bf16> grad;
  View<const bf16> branch;

  __device__ float operator()(int64_t item, int64_t row, int64_t column) const {
    return cuda::Widen(grad.Row(row, item)[column]) * cuda::Widen(branch.Row(row, item)[column]);
  }
};

struct Arithmetic {
  __device__ static float Value(float x, float branch, float gate) {
    return x + cuda::RoundThroughBf16(gate * branch);
  }
  static absl::Status AddGateGradient(cudaStream_t stream, const Tensor& grad, const Tensor& branch,
                                      const Tensor& index, const Tensor& to) {
    return AddToTable(stream, grad.batch, index, to,
                      GateContribution{View<const bf16>(grad), View<const bf16>(branch)});
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeGatedResidual() {
  return std::make_shared<cuda::GatedResidualOperation<ProviderOperation, bf16, Arithmetic>>(
      "provider GatedResidual");
}

}  // namespace plumbline::provider_cuda
