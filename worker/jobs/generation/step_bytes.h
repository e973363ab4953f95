#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_STEP_BYTES_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_STEP_BYTES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/jobs/generation/state.h"
#include "worker/jobs/generation/transformer_calls.h"
#include "worker/steps/step_store.h"

// Between velocities in memory and the bytes of a saved step.

namespace plumbline::jobs {

inline constexpr char kVideoVelocity[] = "velocity.video";
inline constexpr char kAudioVelocity[] = "velocity.audio";

// The two velocities of the step to come as a step to be saved: its outputs and bytes are set, and
// nothing else of the record. Shapes are those of the rows that the step reads.
steps::SavedStep MakeSavedStep(const StepInputs& inputs, const Velocities& velocities);

// The reverse. Where the bytes are not those that the record describes, or the record does not
// describe the two velocities of `inputs`, `*tensor` is set to the name of the first that is wrong
// and the result is DATA_LOSS.
absl::StatusOr<Velocities> ReadVelocities(const steps::SavedStep& step, const StepInputs& inputs,
                                          std::string* tensor);

// Where two velocities of `width` columns differ in their bytes: "first differing value at row 3,
// column 7: 0.5 saved, 0.25 now; 9 of 96 differ". Empty: nowhere.
std::string DescribeDifference(absl::Span<const float> saved, absl::Span<const float> now,
                               int64_t width);

// The first velocity that holds a NaN or an infinity; empty: none does.
std::string FirstNonfinite(const Velocities& velocities);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_STEP_BYTES_H_
