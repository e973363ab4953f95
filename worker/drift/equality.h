#ifndef PLUMBLINE_WORKER_DRIFT_EQUALITY_H_
#define PLUMBLINE_WORKER_DRIFT_EQUALITY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "kernels/tensor.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "worker/drift/compare.h"

namespace plumbline::drift {

// Compares the bytes of one more execution with the first one's and adds what it found to `check`:
// one more execution, the first difference of all. Both tensors are in the host's memory and of
// one type and shape, strides being free. `name_row` is asked about rows of `first`'s view.
void AddExecution(const Tensor& first, const Tensor& other, absl::string_view variation,
                  const RowNamer& name_row, v1::EqualityCheck* check);

// The same where both are in the memory of `device`: on a GPU they stay there, but for the first
// value that differs. Their type is then BF16, F32 or F64.
absl::Status AddExecutionOnDevice(Device& device, const Tensor& first, const Tensor& other,
                                  absl::string_view variation, const RowNamer& name_row,
                                  v1::EqualityCheck* check);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_EQUALITY_H_
