// The decoders' operations on a GPU, written once for the golden, the provider and the candidate.
// Deterministic: no atomics, no sum whose order depends on anything but its length.
#ifndef PLUMBLINE_KERNELS_DECODERS_CUDA_OPERATIONS_H_
#define PLUMBLINE_KERNELS_DECODERS_CUDA_OPERATIONS_H_

#include <cuda_runtime_api.h>

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "kernels/decoders/checks.h"
#include "kernels/ops.h"

namespace plumbline::decoders_cuda {

// What an implementation computes in.
enum class Arithmetic {
  // float64 inside everything that is not a matrix product, one rounding to float32: the golden.
  kFloat64,
  // float32: the candidate.
  kFloat32,
  // float32, and float16 where kernels/ops.h says so: the provider, as PyTorch's autocast has it.
  kAutocast,
};

struct Flavour {
  const char* implementation;  // Must outlive the operations.
  Precision precision;
  Arithmetic arithmetic;
};

// The base of all of them.
class DecoderOperation : public Operation {
 public:
  Precision precision() const final { return flavour_.precision; }
  absl::Status Check(const ForwardCall& call) const override {
    return decoders::CheckCall(flavour_.implementation, op_, call);
  }

 protected:
  DecoderOperation(const Flavour& flavour, OpKind op) : flavour_(flavour), op_(op) {}

  static cudaStream_t Stream(const ExecutionContext& context) {
    return static_cast<cudaStream_t>(context.stream);
  }

  const Flavour flavour_;
  const OpKind op_;
};

using OperationPointer = std::shared_ptr<const Operation>;

OperationPointer MakeNorm(const Flavour& flavour, OpKind op);         // norms.cu, three of them
OperationPointer MakeRope(const Flavour& flavour);                    // rope.cu
OperationPointer MakeAttention(const Flavour& flavour);               // attention.cu
OperationPointer MakeElementwise(const Flavour& flavour, OpKind op);  // elementwise.cu, four
OperationPointer MakeConvolution(const Flavour& flavour, OpKind op);  // convolution.cu, both
OperationPointer MakeSnakeBeta(const Flavour& flavour);               // snake_beta.cu

// All but kDecoderLinear.
inline std::map<OpKind, OperationPointer> MakeOperations(const Flavour& flavour) {
  std::map<OpKind, OperationPointer> operations = {
      {OpKind::kDecoderRope, MakeRope(flavour)},
      {OpKind::kDecoderAttention, MakeAttention(flavour)},
      {OpKind::kSnakeBeta, MakeSnakeBeta(flavour)},
  };
  for (const OpKind op :
       {OpKind::kDecoderRmsNorm, OpKind::kDecoderHeadNorm, OpKind::kDecoderLayerNorm}) {
    operations[op] = MakeNorm(flavour, op);
  }
  for (const OpKind op :
       {OpKind::kDecoderSwiGlu, OpKind::kDecoderResidual, OpKind::kAppendTokens, OpKind::kMean}) {
    operations[op] = MakeElementwise(flavour, op);
  }
  for (const OpKind op : {OpKind::kConv1d, OpKind::kConvTranspose1d}) {
    operations[op] = MakeConvolution(flavour, op);
  }
  return operations;
}

}  // namespace plumbline::decoders_cuda

#endif  // PLUMBLINE_KERNELS_DECODERS_CUDA_OPERATIONS_H_
