#include "worker/jobs/generation/latent_drift.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/jobs/generation/sensitivity.h"
#include "worker/jobs/generation/step_bytes.h"

namespace plumbline::jobs {

absl::StatusOr<LatentDriftMeter> LatentDriftMeter::Make(const GenerationState& start,
                                                        const std::string& against,
                                                        steps::StepStore* store) {
  absl::StatusOr<v1::Run> run = store->GetRun(against);
  if (!run.ok()) return AnnotateStatus(run.status(), absl::StrCat("against ", against));
  for (const v1::StepRecord& record : run->steps()) {
    if (record.index() != 0) continue;
    const std::string tensor =
        FirstDifference(StepInputDigester().Digest(start.Inputs()), record.inputs());
    if (tensor.empty()) continue;
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "against ", against, ": it began with another ", tensor,
            "; runs are compared that have noise, conditioning and schedules in common")),
        "NOISE_DIFFERS");
  }
  return LatentDriftMeter(start, against, store);
}

absl::Status LatentDriftMeter::TakeStep() {
  if (other_.finished()) return absl::OkStatus();
  const auto advance = [this](const steps::SavedStep& step) -> absl::Status {
    std::string tensor;
    const absl::StatusOr<Velocities> velocities = ReadVelocities(step, other_.Inputs(), &tensor);
    if (!velocities.ok()) {
      return AnnotateStatus(velocities.status(),
                            absl::StrCat(against_, ": step ", other_.step(), ": ", tensor));
    }
    return other_.Advance(velocities->video, velocities->audio);
  };
  return store_->Fetch(against_, other_.step(), 1, advance);
}

void LatentDriftMeter::Prepare() {
  prepared_ = std::async(std::launch::async, [this] { return TakeStep(); });
}

absl::Status LatentDriftMeter::Join() {
  return prepared_.valid() ? prepared_.get() : absl::OkStatus();
}

absl::StatusOr<std::optional<v1::LatentDrift>> LatentDriftMeter::Measure(
    const GenerationState& state) {
  if (other_.step() + 1 == state.step()) PLUMBLINE_RETURN_IF_ERROR(TakeStep());
  if (other_.step() != state.step()) return std::nullopt;  // It has no such step.
  v1::LatentDrift drift;
  drift.set_step(state.step() - 1);
  drift.set_video(RelativeL2(other_.target_video(), state.target_video()));
  drift.set_audio(RelativeL2(other_.audio(), state.audio()));
  return drift;
}

}  // namespace plumbline::jobs
