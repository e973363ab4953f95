#include "worker/jobs/generation/sensitivity.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/h3/host_tensor.h"

namespace plumbline::jobs {
namespace {

// Timesteps of a first step are 0, but for float32's rounding.
constexpr float kTimestepChange = 0.25f;

// A copy of `tensor` whose rows [begin, end) are others, of like size.
absl::StatusOr<h3::HostTensor> ChangedRows(const Tensor& tensor, int64_t begin, int64_t end) {
  PLUMBLINE_ASSIGN_OR_RETURN(
      h3::HostTensor changed,
      h3::AllocateHostTensor(DType::kF32, tensor.batch, tensor.rows, tensor.width));
  const float* const from = static_cast<const float*>(tensor.data);
  float* const to = static_cast<float*>(changed.tensor.data);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const int64_t row = i / tensor.width;
    to[i] = row >= begin && row < end ? 0.5f - from[i] : from[i];
  }
  return changed;
}

}  // namespace

std::vector<std::string> SensitiveInputs(const h3::PackedLayout& layout) {
  std::vector<std::string> inputs = {"text"};
  if (layout.keyframe_rows > 0) inputs.push_back("keyframe");
  for (const char* input : {"audio", "video", "timestep"}) inputs.push_back(input);
  return inputs;
}

absl::StatusOr<v1::SensitivityCheck> CheckSensitivity(absl::string_view input,
                                                      const StepInputs& inputs,
                                                      const Velocities& unchanged,
                                                      TransformerCalls* calls) {
  StepInputs changed = inputs;
  h3::HostTensor rows;
  h3::PackedLayout layout;
  const auto change = [&](Tensor* tensor, int64_t begin, int64_t end) -> absl::Status {
    PLUMBLINE_ASSIGN_OR_RETURN(rows, ChangedRows(*tensor, begin, end));
    *tensor = rows.tensor;
    return absl::OkStatus();
  };
  const int64_t keyframe_rows = inputs.layout->keyframe_rows;
  if (input == "text") {
    PLUMBLINE_RETURN_IF_ERROR(change(&changed.text, 0, changed.text.rows));
  } else if (input == "keyframe") {
    PLUMBLINE_RETURN_IF_ERROR(change(&changed.video, 0, keyframe_rows));
  } else if (input == "audio") {
    PLUMBLINE_RETURN_IF_ERROR(change(&changed.audio, 0, changed.audio.rows));
  } else if (input == "video") {
    PLUMBLINE_RETURN_IF_ERROR(change(&changed.video, keyframe_rows, changed.video.rows));
  } else if (input == "timestep") {
    layout = *inputs.layout;
    // As many distinct timesteps as before, and their order kept.
    for (float& timestep : layout.timestep) {
      if (timestep < h3::kKeyframeTimestep - kTimestepChange) timestep += kTimestepChange;
    }
    changed.layout = &layout;
  } else {
    return absl::InternalError(absl::StrCat("no input is called ", input));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const Velocities velocities, calls->Evaluate(changed));
  v1::SensitivityCheck check;
  check.set_input(std::string(input));
  check.set_video_change(RelativeL2(unchanged.video, velocities.video));
  check.set_audio_change(RelativeL2(unchanged.audio, velocities.audio));
  check.set_passed(check.video_change() > 0 && check.audio_change() > 0);
  return check;
}

double RelativeL2(absl::Span<const float> reference, absl::Span<const float> x) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double delta = static_cast<double>(reference[i]) - x[i];
    difference += delta * delta;
    norm += static_cast<double>(reference[i]) * reference[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference) / std::sqrt(norm);
}

}  // namespace plumbline::jobs
