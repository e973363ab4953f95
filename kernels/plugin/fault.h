// What a plug-in did wrong, as a status. None is tried again: elsewhere it would do the same.
#ifndef PLUMBLINE_KERNELS_PLUGIN_FAULT_H_
#define PLUMBLINE_KERNELS_PLUGIN_FAULT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plumbline::plugin {

// Reasons (common/status.h) of such a status.
inline constexpr char kFailedReason[] = "PLUGIN_FAILED";        // a call said that it failed
inline constexpr char kViolationReason[] = "PLUGIN_VIOLATION";  // a guard caught it
inline constexpr char kCrashedReason[] = "PLUGIN_CRASHED";      // a signal, or it never returned
// What it enqueued broke the device: the process must not use that any more.
inline constexpr char kDeviceFaultReason[] = "PLUGIN_DEVICE_FAULT";

// FAILED_PRECONDITION "plugin/NAME: WHAT" with a reason. `implementation` is "plugin/NAME".
absl::Status Fault(absl::string_view implementation, absl::string_view what,
                   absl::string_view reason);

// Whether the status tells of a plug-in's fault.
bool IsFault(const absl::Status& status);

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_FAULT_H_
