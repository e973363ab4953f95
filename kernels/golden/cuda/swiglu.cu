// kSwiGlu of the golden.
//
//   gate_up (batch, R, 2 F): value a, then gate b -> (batch, R, F)
//   forward   y = a SiLU(b)
//   backward  da = dy SiLU(b); db = dy a SiLU'(b)
// Rounding: float64 inside, each result once. No sums.
#include "kernels/cuda/swiglu_operation.cuh"
#include "kernels/golden/cuda/operations.h"
#include "kernels/golden/cuda/silu.cuh"

namespace plumbline::golden_cuda {
namespace {

struct Arithmetic {
  __device__ static float Value(float a, float b) { return static_cast<float>(a * Silu(b)); }
  __device__ static void Gradients(float g, float* a, float* b) {
    const double gradient = g;
    const double product = gradient * *a;
    *a = static_cast<float>(gradient * Silu(*b));
    *b = static_cast<float>(product * SiluDerivative(*b));
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() {
  return std::make_shared<cuda::SwiGluOperation<GoldenOperation, float, Arithmetic>>(
      "golden SwiGlu");
}

}  // namespace plumbline::golden_cuda
