#ifndef PLUMBLINE_KERNELS_CUDA_CUDA_OPERATION_H_
#define PLUMBLINE_KERNELS_CUDA_CUDA_OPERATION_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/operation_checks.h"
#include "kernels/ops.h"

namespace plumbline::cuda {

// What every operation of a CUDA family shares: its name in messages, its precision, and the checks
// of types and shapes.
class CudaOperation : public Operation {
 public:
  Precision precision() const final { return precision_; }
  absl::Status Check(const ForwardCall& call) const override {
    return CheckCall(implementation_, precision_, op_, call);
  }

 protected:
  // `implementation` must outlive the operation.
  CudaOperation(absl::string_view implementation, Precision precision, OpKind op)
      : implementation_(implementation), precision_(precision), op_(op) {}

  static cudaStream_t Stream(const ExecutionContext& context) {
    return static_cast<cudaStream_t>(context.stream);
  }

 private:
  const absl::string_view implementation_;
  const Precision precision_;
  const OpKind op_;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_CUDA_OPERATION_H_
