#include "worker/h3/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

// torch.linspace(1, 0, points, dtype=float32), from both ends to the middle.
float GridPoint(int64_t i, int64_t points) {
  const float step = -1.0f / static_cast<float>(points - 1);
  if (i < points / 2) return std::fma(step, static_cast<float>(i), 1.0f);
  return 0.0f - step * static_cast<float>(points - 1 - i);
}

bool IsShift(double shift) { return shift > 0 && shift <= kMaxShift; }  // False for NaN.

absl::Status CheckVelocity(absl::string_view name, size_t size, size_t rows_size) {
  if (size == rows_size) return absl::OkStatus();
  return FieldError(name, absl::StrCat("holds ", size, " values"),
                    absl::StrCat(rows_size, ", as its rows do"));
}

}  // namespace

Schedule MakeSchedule(int64_t points, double shift) {
  const float scale = static_cast<float>(shift);
  const float scale_less_one = static_cast<float>(shift - 1.0);
  Schedule schedule;
  schedule.sigmas.reserve(points);
  for (int64_t i = 0; i < points; ++i) {
    const float x = GridPoint(i, points);
    schedule.sigmas.push_back(scale * x / (1.0f + scale_less_one * x));
  }
  schedule.sigmas.erase(std::unique(schedule.sigmas.begin(), schedule.sigmas.end()),
                        schedule.sigmas.end());
  for (size_t i = 0; i + 1 < schedule.sigmas.size(); ++i) {
    schedule.timesteps.push_back(1.0f - schedule.sigmas[i]);
  }
  return schedule;
}

void EulerStep(const Schedule& schedule, int64_t step, absl::Span<const float> velocity,
               absl::Span<float> rows) {
  // Not sigmas[step], bit for bit: the pipeline goes back from the timestep.
  const float noise_level = 1.0f - schedule.timesteps[step];
  const float ratio = schedule.sigmas[step + 1] / schedule.sigmas[step];
  const float rest = 1.0f - ratio;
  for (size_t i = 0; i < rows.size(); ++i) {
    const float denoised = rows[i] + noise_level * velocity[i];
    rows[i] = ratio * rows[i] + rest * denoised;
  }
}

absl::StatusOr<Sampler> Sampler::Create(absl::string_view where, int64_t num_inference_steps,
                                        double video_shift, double audio_shift) {
  std::vector<FieldViolation> violations;
  auto refuse = [&](absl::string_view field, std::string description) {
    violations.push_back({absl::StrCat(where, ": ", field), std::move(description)});
  };
  if (num_inference_steps < kMinGridPoints || num_inference_steps > kMaxGridPoints) {
    refuse("num_inference_steps", absl::StrCat(num_inference_steps, " is out of range; accepted: ",
                                               kMinGridPoints, " to ", kMaxGridPoints));
  }
  const std::string accepted = absl::StrCat(" is out of range; accepted: above 0, to ", kMaxShift);
  if (!IsShift(video_shift)) refuse("video_shift", absl::StrCat(video_shift, accepted));
  if (!IsShift(audio_shift)) refuse("audio_shift", absl::StrCat(audio_shift, accepted));
  PLUMBLINE_RETURN_IF_ERROR(FieldErrors(violations));

  Sampler sampler(MakeSchedule(num_inference_steps, video_shift),
                  MakeSchedule(num_inference_steps, audio_shift));
  for (const auto& [field, shift, schedule] :
       {std::make_tuple("video_shift", video_shift, &sampler.video_),
        std::make_tuple("audio_shift", audio_shift, &sampler.audio_)}) {
    if (schedule->timesteps.front() < 0) {
      refuse(field, absl::StrCat(shift, " begins at timestep ", schedule->timesteps.front(),
                                 " in float32; accepted: a shift that begins at 0, as those of 1 "
                                 "and more do"));
    }
  }
  PLUMBLINE_RETURN_IF_ERROR(FieldErrors(violations));
  if (sampler.video_.Steps() != sampler.audio_.Steps()) {
    return FieldError(
        absl::StrCat(where, ": num_inference_steps"),
        absl::StrCat(num_inference_steps, " points leave ", sampler.video_.Steps(),
                     " distinct video steps and ", sampler.audio_.Steps(), " audio steps"),
        "fewer points, or shifts nearer to 1");
  }
  return sampler;
}

absl::Status Sampler::SetStep(int64_t step, PackedLayout* layout) const {
  return SetTimesteps(video_.timesteps[step], audio_.timesteps[step], layout);
}

absl::Status Sampler::Advance(int64_t step, const PackedLayout& layout,
                              absl::Span<const float> video_velocity,
                              absl::Span<const float> audio_velocity, absl::Span<float> video,
                              absl::Span<float> audio) const {
  PLUMBLINE_RETURN_IF_ERROR(CheckVelocity("velocity.video", video_velocity.size(), video.size()));
  PLUMBLINE_RETURN_IF_ERROR(CheckVelocity("velocity.audio", audio_velocity.size(), audio.size()));
  const size_t target = video.size() / layout.VideoRows() * layout.keyframe_rows;
  EulerStep(video_, step, video_velocity.subspan(target), video.subspan(target));
  EulerStep(audio_, step, audio_velocity, audio);
  return absl::OkStatus();
}

}  // namespace plumbline::h3
