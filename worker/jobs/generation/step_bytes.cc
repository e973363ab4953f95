#include "worker/jobs/generation/step_bytes.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace plumbline::jobs {
namespace {

Tensor Like(const Tensor& rows, const std::vector<float>& values) {
  return Tensor::Dense(const_cast<float*>(values.data()), DType::kF32, 1, rows.rows, rows.width);
}

void AddTensor(absl::string_view name, const Tensor& tensor, steps::SavedStep* step) {
  *step->record.add_outputs() = DigestTensor(name, tensor);
  step->tensors.emplace_back(static_cast<const char*>(tensor.data), tensor.NumBytes());
}

}  // namespace

steps::SavedStep MakeSavedStep(const StepInputs& inputs, const Velocities& velocities) {
  steps::SavedStep step;
  AddTensor(kVideoVelocity, Like(inputs.video, velocities.video), &step);
  AddTensor(kAudioVelocity, Like(inputs.audio, velocities.audio), &step);
  return step;
}

absl::StatusOr<Velocities> ReadVelocities(const steps::SavedStep& step, const StepInputs& inputs,
                                          std::string* tensor) {
  Velocities velocities;
  struct Place {
    absl::string_view name;
    const Tensor& rows;
    std::vector<float>* values;
  };
  const Place places[] = {{kVideoVelocity, inputs.video, &velocities.video},
                          {kAudioVelocity, inputs.audio, &velocities.audio}};
  for (int i = 0; i < 2; ++i) {
    const Place& place = places[i];
    *tensor = std::string(place.name);
    const auto refused = [&](absl::string_view what) { return absl::DataLossError(what); };
    if (i >= step.record.outputs_size() || i >= static_cast<int>(step.tensors.size())) {
      return refused("is not in its record");
    }
    const std::string& bytes = step.tensors[static_cast<size_t>(i)];
    if (bytes.size() != static_cast<size_t>(place.rows.NumElements()) * sizeof(float)) {
      return refused(absl::StrCat("has ", bytes.size(), " bytes"));
    }
    place.values->resize(static_cast<size_t>(place.rows.NumElements()));
    std::memcpy(place.values->data(), bytes.data(), bytes.size());
    const v1::TensorDigest found = DigestTensor(place.name, Like(place.rows, *place.values));
    const v1::TensorDigest& recorded = step.record.outputs(i);
    if (recorded.name() != found.name() || recorded.sha256() != found.sha256()) {
      return refused(absl::StrCat("its bytes have SHA-256 ", found.sha256(), ", the record says ",
                                  recorded.sha256()));
    }
  }
  tensor->clear();
  return velocities;
}

std::string DescribeDifference(absl::Span<const float> saved, absl::Span<const float> now,
                               int64_t width) {
  if (saved.size() != now.size()) {
    return absl::StrCat(saved.size(), " values saved, ", now.size(), " now");
  }
  int64_t first = -1;
  int64_t differing = 0;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (std::memcmp(&saved[i], &now[i], sizeof(float)) == 0) continue;
    if (differing++ == 0) first = static_cast<int64_t>(i);
  }
  if (first < 0) return "";
  return absl::StrCat("first differing value at row ", first / width, ", column ", first % width,
                      ": ", saved[static_cast<size_t>(first)], " saved, ",
                      now[static_cast<size_t>(first)], " now; ", differing, " of ", saved.size(),
                      " differ");
}

std::string FirstNonfinite(const Velocities& velocities) {
  const auto is_finite = [](float value) { return std::isfinite(value); };
  if (!absl::c_all_of(velocities.video, is_finite)) return kVideoVelocity;
  if (!absl::c_all_of(velocities.audio, is_finite)) return kAudioVelocity;
  return "";
}

}  // namespace plumbline::jobs
