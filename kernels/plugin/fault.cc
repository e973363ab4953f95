#include "kernels/plugin/fault.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::plugin {

absl::Status Fault(absl::string_view implementation, absl::string_view what,
                   absl::string_view reason) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat(implementation, ": ", what)),
                    reason);
}

bool IsFault(const absl::Status& status) {
  const std::string reason = GetReason(status);
  return reason == kFailedReason || reason == kViolationReason || reason == kCrashedReason ||
         reason == kDeviceFaultReason;
}

}  // namespace plumbline::plugin
