#ifndef PLUMBLINE_KERNELS_DECODERS_CHECKS_H_
#define PLUMBLINE_KERNELS_DECODERS_CHECKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops.h"

namespace plumbline::decoders {

// Operation::Check of the decoders' operations but kDecoderLinear, on any device: whether the types
// and shapes of `call` are those that kernels/ops.h gives the operation. `implementation` begins
// the message.
absl::Status CheckCall(absl::string_view implementation, OpKind op, const ForwardCall& call);

// The same of kDecoderLinear, for an implementation whose own linear does not serve it.
absl::Status CheckLinear(absl::string_view implementation, const ForwardCall& call);

// The largest of Attributes::rotary_frequencies.
inline constexpr int64_t kMostFrequencies = 64;

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CHECKS_H_
