// The faulty operations, one factory each; faults.cc says which nodes they stand in.
#ifndef PLUMBLINE_WORKER_DRIFT_FAULT_OPERATIONS_H_
#define PLUMBLINE_WORKER_DRIFT_FAULT_OPERATIONS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/ops.h"

namespace plumbline::drift {

using SharedOperation = std::shared_ptr<const Operation>;

// Zeros of one element type in a device's memory: a view of any shape whose rows are all one row.
class ZeroRow {
 public:
  static absl::StatusOr<std::shared_ptr<const ZeroRow>> Make(Device& device, DType dtype,
                                                             int64_t width);
  // `like` is not wider than the row.
  Tensor Like(const Tensor& like) const;

 private:
  ZeroRow(DeviceBuffer buffer, DType dtype) : buffer_(std::move(buffer)), dtype_(dtype) {}

  const DeviceBuffer buffer_;
  const DType dtype_;
};

// kSwiGlu reads its value as the gate and its gate as the value.
SharedOperation MakeSwappedSwiGlu(SharedOperation base);

// kRope turns every channel of a head: ceil(D / 6) frequencies an axis, over a head that is padded
// to hold them.
SharedOperation MakeFullRope(SharedOperation base);

// kAttention reads only the first R - max(1, R / 8) keys, of a single row its key. `add` is a
// kGradSum.
SharedOperation MakeLastKeysDropped(SharedOperation base, SharedOperation add,
                                    std::shared_ptr<const ZeroRow> zeros);

// kAdalnProjection reads temb rounded to bfloat16.
SharedOperation MakeRoundedAdaln(SharedOperation base);

// kModulatedRmsNorm computes its output as `golden`, the operation in float32, does and rounds it
// once.
SharedOperation MakeFloat32Norm(SharedOperation base, SharedOperation golden);

// kLinear returns zero as the gradient of its weight.
SharedOperation MakeZeroWeightGradient(SharedOperation base, std::shared_ptr<const ZeroRow> zeros);

// kLinear cuts its reduction into 1 + floor(log2(batch * rows)) mod 3 parts, each rounded to
// bfloat16; `add` (kGradSum) adds them.
SharedOperation MakeSplitByRows(SharedOperation base, SharedOperation add);

// kModulatedRmsNorm, kGatedResidual: the gradients of the table are `provider`'s, which adds in
// bfloat16 in row order, over rows that begin at row `*executions`, which every backward advances.
SharedOperation MakeUnorderedTableGradient(SharedOperation base, SharedOperation provider,
                                           std::shared_ptr<std::atomic<int64_t>> executions);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_FAULT_OPERATIONS_H_
