#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_SENSITIVITY_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_SENSITIVITY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/jobs/generation/step_inputs.h"
#include "worker/jobs/generation/transformer_calls.h"

// Whether a model looks at what it is given: each input of the first step, changed alone, must
// change both velocities.

namespace plumbline::jobs {

// The inputs that a layout has, in the order in which they are checked: "text", "keyframe",
// "audio", "video", "timestep".
std::vector<std::string> SensitiveInputs(const h3::PackedLayout& layout);

// Evaluates the step with `input` changed and compares with what it gives unchanged.
absl::StatusOr<v1::SensitivityCheck> CheckSensitivity(absl::string_view input,
                                                      const StepInputs& inputs,
                                                      const Velocities& unchanged,
                                                      TransformerCalls* calls);

// ||reference - x|| / ||reference|| in float64, in order; ||x|| where the reference is zero; NaN
// where a value is not finite. Equal sizes.
double RelativeL2(absl::Span<const float> reference, absl::Span<const float> x);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_SENSITIVITY_H_
