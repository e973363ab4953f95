#ifndef PLUMBLINE_WORKER_DRIFT_CAPTURE_NAMES_H_
#define PLUMBLINE_WORKER_DRIFT_CAPTURE_NAMES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"

namespace plumbline::drift {

// A tensor that a capture must have.
struct CapturedTensor {
  std::string name;
  std::vector<int64_t> shape;
};

// Whether a capture's tensor has a type that comparisons take: BF16, F32, F64.
bool IsComparableType(DType dtype);

// OK if a capture has every tensor of `required` in its shape and a comparable type, and no other
// but those that `may_have` says are no mistake. INVALID_ARGUMENT on `field` names every tensor
// that is missing, extra, or of another type or shape, in one error. `owner` is what the tensors
// are of, e.g. "a block".
absl::Status CheckCaptureNames(absl::string_view field, const SafetensorsFile& file,
                               absl::string_view owner, const std::vector<CapturedTensor>& required,
                               const std::function<bool(absl::string_view)>& may_have);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_CAPTURE_NAMES_H_
