#ifndef PLUMBLINE_WORKER_H3_SAMPLER_H_
#define PLUMBLINE_WORKER_H3_SAMPLER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/h3/packed_layout.h"

// The rectified-flow Euler sampler of the released pipeline (diffusers' MiniMaxH3Scheduler), bit
// for bit: float32, one rounding an operation.

namespace plumbline::h3 {

inline constexpr int64_t kMinGridPoints = 2;
inline constexpr int64_t kMaxGridPoints = 10000;
inline constexpr double kMaxShift = 1000;  // Shifts lie above 0.

// Shifts of the released model.
inline constexpr double kReleasedVideoShift = 12;
inline constexpr double kReleasedAudioShift = 3;

// The noise levels of one modality. Sigma 1 is pure noise, 0 is clean; t = 1 - sigma is what the
// transformer reads.
struct Schedule {
  std::vector<float> sigmas;     // Falling from 1, to float32's rounding, to 0.
  std::vector<float> timesteps;  // One an evaluation: all sigmas' but the last.

  int64_t Steps() const { return static_cast<int64_t>(timesteps.size()); }
};

// A grid of `points` equal steps from 1 to 0, shifted towards noise: sigma = s x / (1 + (s - 1) x).
// Neighbours that float32 cannot tell apart are one. `points` and `shift` are within the limits
// above.
Schedule MakeSchedule(int64_t points, double shift);

// One step of `rows` along `velocity` (which points to the data), in place, both of one size, and
// 0 <= step < schedule.Steps().
void EulerStep(const Schedule& schedule, int64_t step, absl::Span<const float> velocity,
               absl::Span<float> rows);

// The two schedules of one run, stepped together. Immutable: any thread may use it.
class Sampler {
 public:
  // INVALID_ARGUMENT, its fields "WHERE: num_inference_steps", "WHERE: video_shift" and "WHERE:
  // audio_shift", for values beyond the limits above, for one of the few shifts below 1 whose first
  // timestep float32 rounds to less than 0 (0.2 is one), and for shifts so far apart that it leaves
  // one schedule with more steps than the other.
  static absl::StatusOr<Sampler> Create(absl::string_view where, int64_t num_inference_steps,
                                        double video_shift, double audio_shift);

  // Evaluations of the transformer: one fewer than grid points, where no two collapse.
  int64_t Steps() const { return video_.Steps(); }
  const Schedule& video() const { return video_; }
  const Schedule& audio() const { return audio_; }

  // Gives the rows of `layout` their timesteps at `step`, 0 <= step < Steps().
  absl::Status SetStep(int64_t step, PackedLayout* layout) const;

  // One step, 0 <= step < Steps(), in place: of the target's rows in `video`, which holds
  // (layout.VideoRows(), any width) values with the keyframes' first, and of all of `audio`. The
  // keyframes' rows stay as they are. INVALID_ARGUMENT unless each velocity is of the size of its
  // rows.
  absl::Status Advance(int64_t step, const PackedLayout& layout,
                       absl::Span<const float> video_velocity,
                       absl::Span<const float> audio_velocity, absl::Span<float> video,
                       absl::Span<float> audio) const;

 private:
  Sampler(Schedule video, Schedule audio) : video_(std::move(video)), audio_(std::move(audio)) {}

  Schedule video_;
  Schedule audio_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_SAMPLER_H_
