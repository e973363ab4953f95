#include "worker/jobs/generation/run.h"

#include <future>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/crash_point.h"
#include "common/logging.h"
#include "common/status.h"
#include "common/step_digest.h"
#include "worker/drift/trace_check.h"
#include "worker/jobs/generation/preview.h"
#include "worker/jobs/generation/sensitivity.h"
#include "worker/jobs/generation/step_bytes.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {

GenerationRun::GenerationRun(const GenerationSetup& setup, steps::StepStore* store)
    : setup_(setup),
      environment_(setup.environment.generation),
      store_(store),
      run_(setup.RunName()),
      context_(setup.environment.context) {
  context_.check_cancelled = [this] {
    SendAcknowledged();
    return setup_.environment.context.check_cancelled();
  };
  facts_ = {setup.run_identity, setup.seed, setup.Steps(), setup.preflight()};
}

absl::StatusOr<JobResult> GenerationRun::Run() {
  PLUMBLINE_RETURN_IF_ERROR(Open());
  PLUMBLINE_RETURN_IF_ERROR(Describe());
  absl::Status status = TakeSteps();
  // Whatever ended it: what was computed is not lost.
  const absl::Status flushed = store_->Flush();
  SendAcknowledged();
  if (status.ok()) status = flushed;
  if (!status.ok() && inconsistency_.has_value() && setup_.fault != nullptr) {
    Judge(absl::StrCat("step.", inconsistency_->step, "/", inconsistency_->tensor), "identity");
    status = absl::OkStatus();
  }
  PLUMBLINE_RETURN_IF_ERROR(status);
  return Finish();
}

absl::Status GenerationRun::Open() {
  PLUMBLINE_ASSIGN_OR_RETURN(state_, GenerationState::Start(setup_));
  if (environment_.on_run && setup_.fault == nullptr) environment_.on_run(run_);
  for (const v1::SensitivityCheck& check : environment_.sensitivity) {
    sensitivity_[check.input()] = check;
  }
  absl::StatusOr<v1::Run> run = store_->GetRun(run_);
  if (!run.ok() && !absl::IsNotFound(run.status())) return run.status();
  if (run.ok() && run->state() == v1::RUN_STATE_BROKEN) {
    return absl::FailedPreconditionError(absl::StrCat(run_, " is broken: ", run->problem()));
  }
  if (!run.ok()) PLUMBLINE_RETURN_IF_ERROR(store_->Begin(facts_));
  bool all_readable = true;
  if (run.ok()) {
    for (v1::StepRecord& record : *run->mutable_steps()) {
      for (const v1::SensitivityCheck& check : record.sensitivity()) {
        sensitivity_[check.input()] = check;
      }
      if (!record.quarantined() && setup_.spec.verify_last_step()) verified_step_ = record.index();
      saved_[record.index()] = std::move(record);
    }
  }
  for (int32_t step = 0; step < setup_.Steps(); ++step) all_readable &= IsReadable(step);
  Log(LogLevel::kInfo, "run opened",
      {{"run", run_}, {"saved_steps", saved_.size()}, {"steps", setup_.Steps()}});

  PLUMBLINE_ASSIGN_OR_RETURN(
      calls_, TransformerCalls::Make(
                  setup_.graph, setup_.resolved, setup_.weights, context_,
                  /*ignores_text=*/setup_.fault != nullptr && setup_.fault->name == "text-ignored",
                  RowsOf(state_->layout())));
  // Beside the fetching and replaying of what is saved.
  if (!all_readable || verified_step_ >= 0) calls_->StartLoading();
  if (setup_.save_tensors) {
    PLUMBLINE_ASSIGN_OR_RETURN(GenerationTensors tensors,
                               GenerationTensors::Create(TensorsPath(), setup_, *state_));
    tensors_.emplace(std::move(tensors));
  }
  if (!environment_.against_run.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(drift_,
                               LatentDriftMeter::Make(*state_, environment_.against_run, store_));
  }
  return absl::OkStatus();
}

const v1::StepRecord* GenerationRun::Saved(int32_t step) const {
  const auto found = saved_.find(step);
  return found == saved_.end() ? nullptr : &found->second;
}

bool GenerationRun::IsReadable(int32_t step) const {
  const v1::StepRecord* const record = Saved(step);
  return record != nullptr && !record->quarantined() && unreadable_.count(step) == 0;
}

absl::Status GenerationRun::TakeSteps() {
  while (!state_->finished() && !failure_.has_value()) {
    PLUMBLINE_RETURN_IF_ERROR(context_.check_cancelled());
    PLUMBLINE_RETURN_IF_ERROR(CheckYield());
    const int32_t step = state_->step();
    if (IsReadable(step)) {
      PLUMBLINE_RETURN_IF_ERROR(ReplayFrom(step));
    } else {
      PLUMBLINE_RETURN_IF_ERROR(ComputeStep());
    }
  }
  return absl::OkStatus();
}

absl::Status GenerationRun::ReplayFrom(int32_t step) {
  // A step that takes long is fetched alone, so that no stream waits for it.
  const auto takes_long = [this](int32_t index) {
    return index == verified_step_ || (index == 0 && NeedsSensitivity());
  };
  int32_t end = step + 1;
  if (!takes_long(step)) {
    while (IsReadable(end) && !takes_long(end)) ++end;
  }
  std::optional<steps::SavedStep> alone;
  PLUMBLINE_RETURN_IF_ERROR(
      store_->Fetch(run_, step, end - step, [&](steps::SavedStep saved) -> absl::Status {
        if (takes_long(step)) {
          alone = std::move(saved);
          return absl::OkStatus();
        }
        PLUMBLINE_RETURN_IF_ERROR(context_.check_cancelled());
        PLUMBLINE_RETURN_IF_ERROR(CheckYield());
        return ReplayStep(saved);
      }));
  if (alone.has_value()) PLUMBLINE_RETURN_IF_ERROR(ReplayStep(*alone));
  // The store has found out, reading, that it cannot give what it had listed.
  if (state_->step() < end) unreadable_.insert(state_->step());
  return absl::OkStatus();
}

absl::Status GenerationRun::ReplayStep(const steps::SavedStep& saved) {
  const absl::Time start = context_.clock->Now();
  const int32_t step = state_->step();
  const StepInputs inputs = state_->Inputs();
  PLUMBLINE_RETURN_IF_ERROR(CheckInputs(saved.record, digester_.Digest(inputs)));
  std::string tensor;
  const absl::StatusOr<Velocities> velocities = ReadVelocities(saved, inputs, &tensor);
  if (!velocities.ok()) return Inconsistent(tensor, velocities.status().message());
  CheckTrace(saved.record);
  if (step == verified_step_) {
    PLUMBLINE_RETURN_IF_ERROR(VerifyStep(*velocities));
  } else {
    SendStep(step, v1::STEP_ORIGIN_REPLAYED, absl::ToDoubleSeconds(context_.clock->Now() - start));
  }
  if (step == 0 && NeedsSensitivity()) PLUMBLINE_RETURN_IF_ERROR(CheckSensitivity(*velocities));
  return FinishStep(*velocities, saved.record,
                    step == verified_step_ ? v1::STEP_ORIGIN_RECOMPUTED : v1::STEP_ORIGIN_REPLAYED);
}

absl::Status GenerationRun::VerifyStep(const Velocities& saved) {
  double seconds = 0;
  PLUMBLINE_ASSIGN_OR_RETURN(const Velocities now, Evaluate(v1::STEP_ORIGIN_RECOMPUTED, &seconds));
  const StepInputs inputs = state_->Inputs();
  for (const auto& [tensor, before, after, width] :
       {std::tuple(kVideoVelocity, &saved.video, &now.video, inputs.video.width),
        std::tuple(kAudioVelocity, &saved.audio, &now.audio, inputs.audio.width)}) {
    const std::string difference = DescribeDifference(*before, *after, width);
    if (!difference.empty()) return Inconsistent(tensor, difference);
  }
  SendStep(state_->step(), v1::STEP_ORIGIN_RECOMPUTED, seconds);
  return absl::OkStatus();
}

absl::StatusOr<Velocities> GenerationRun::Evaluate(v1::StepOrigin origin, double* seconds) {
  const int32_t step = state_->step();
  SendProgress(absl::StrCat("step ", step));
  // What a computation that was lost, or made twice, is found by.
  Log(LogLevel::kInfo, "computing step",
      {{"run", run_},
       {"step", step},
       {"fencing_token", environment_.fencing_token},
       {"origin", v1::StepOrigin_Name(origin)}});
  CrashPoint(CrashPlace::kWorkerBeforeCompute);
  const absl::Time start = context_.clock->Now();
  PLUMBLINE_ASSIGN_OR_RETURN(Velocities velocities, calls_->Evaluate(state_->Inputs()));
  *seconds = absl::ToDoubleSeconds(context_.clock->Now() - start);
  CrashPoint(CrashPlace::kWorkerAfterCompute);
  return velocities;
}

absl::Status GenerationRun::ComputeStep() {
  const int32_t step = state_->step();
  const StepInputs inputs = state_->Inputs();
  const v1::StepRecord* const earlier = Saved(step);
  if (earlier != nullptr) {
    PLUMBLINE_RETURN_IF_ERROR(CheckInputs(*earlier, digester_.Digest(inputs)));
  }
  const v1::StepOrigin origin =
      earlier == nullptr ? v1::STEP_ORIGIN_COMPUTED : v1::STEP_ORIGIN_RECOMPUTED;

  // A GPU leaves the processors time for what needs no result of this step.
  std::future<TensorDigests> digesting =
      std::async(std::launch::async, [&] { return digester_.Digest(inputs); });
  if (drift_.has_value()) drift_->Prepare();
  double seconds = 0;
  absl::StatusOr<Velocities> evaluated = Evaluate(origin, &seconds);
  const absl::Status prepared = drift_.has_value() ? drift_->Join() : absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const Velocities velocities, std::move(evaluated));
  PLUMBLINE_RETURN_IF_ERROR(prepared);
  const TensorDigests digests = digesting.get();
  if (const std::string tensor = FirstNonfinite(velocities); !tensor.empty()) {
    Judge(absl::StrCat("step.", step, "/", tensor), "finite");
    return absl::OkStatus();
  }
  steps::SavedStep made = MakeSavedStep(inputs, velocities);
  for (int i = 0; earlier != nullptr && i < earlier->outputs_size(); ++i) {
    if (i >= made.record.outputs_size() ||
        earlier->outputs(i).sha256() != made.record.outputs(i).sha256()) {
      return Inconsistent(earlier->outputs(i).name(),
                          "computed again from the same inputs it has other bytes than were saved");
    }
  }
  v1::StepRecord& record = made.record;
  record.set_index(step);
  record.set_input_digest(StepInputDigest(setup_.run_identity.sha256(), step, digests));
  *record.mutable_inputs() = digests;
  record.set_attempt(environment_.attempt);
  record.set_seconds(seconds);
  *record.mutable_trace() = calls_->Trace();
  for (const auto& [input, check] : sensitivity_) *record.add_sensitivity() = check;
  CheckTrace(record);

  const v1::StepRecord described = record;
  computed_[step] = origin;
  const absl::Status saved = store_->Save(facts_, std::move(made));
  if (absl::IsDataLoss(saved)) return Inconsistent(kVideoVelocity, saved.message());
  PLUMBLINE_RETURN_IF_ERROR(saved);
  SendAcknowledged();
  if (step == 0 && NeedsSensitivity()) PLUMBLINE_RETURN_IF_ERROR(CheckSensitivity(velocities));
  return FinishStep(velocities, described, origin);
}

bool GenerationRun::NeedsSensitivity() const {
  // A run that is all there was checked when it was made.
  bool all_readable = true;
  for (int32_t step = 0; step < setup_.Steps(); ++step) all_readable &= IsReadable(step);
  if (all_readable) return false;
  for (const std::string& input : SensitiveInputs(state_->layout())) {
    if (sensitivity_.count(input) == 0) return true;
  }
  return false;
}

absl::Status GenerationRun::CheckSensitivity(const Velocities& unchanged) {
  for (const std::string& input : SensitiveInputs(state_->layout())) {
    if (sensitivity_.count(input) > 0) continue;
    PLUMBLINE_RETURN_IF_ERROR(CheckYield());
    SendProgress(absl::StrCat("step ", state_->step(), " with its ", input, " changed"));
    PLUMBLINE_ASSIGN_OR_RETURN(
        const v1::SensitivityCheck check,
        jobs::CheckSensitivity(input, state_->Inputs(), unchanged, calls_.get()));
    sensitivity_[input] = check;
    if (environment_.on_sensitivity) environment_.on_sensitivity(check);
    if (!check.passed()) {
      Judge(input, "sensitivity");
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status GenerationRun::FinishStep(const Velocities& velocities, const v1::StepRecord& record,
                                       v1::StepOrigin origin) {
  const int32_t step = state_->step();
  if (tensors_.has_value()) PLUMBLINE_RETURN_IF_ERROR(tensors_->WriteStep(*state_, velocities));
  v1::GenerationReport::Step& reported = *report_.add_steps();
  reported.set_index(step);
  reported.set_video_timestep(setup_.sampler->video().timesteps[static_cast<size_t>(step)]);
  reported.set_audio_timestep(setup_.sampler->audio().timesteps[static_cast<size_t>(step)]);
  reported.set_origin(origin);
  reported.set_attempt(record.attempt());
  reported.set_seconds(record.seconds());
  reported.set_input_digest(record.input_digest());
  *reported.mutable_outputs() = record.outputs();
  if (report_.trace().groups().empty()) *report_.mutable_trace() = record.trace();

  PLUMBLINE_RETURN_IF_ERROR(state_->Advance(velocities.video, velocities.audio));
  if (drift_.has_value()) {
    PLUMBLINE_ASSIGN_OR_RETURN(std::optional<v1::LatentDrift> drift, drift_->Measure(*state_));
    if (drift.has_value()) {
      drift->set_seed(setup_.seed);
      if (environment_.on_latent_drift) environment_.on_latent_drift(*drift);
      *report_.add_latent_drift() = *std::move(drift);
    }
  }
  PLUMBLINE_RETURN_IF_ERROR(SendPreview(step));
  SendProgress("");
  return absl::OkStatus();
}

absl::Status GenerationRun::SendPreview(int32_t step) const {
  if (!environment_.on_preview) return absl::OkStatus();
  const h3::LayoutSpec& layout = setup_.layout;
  v1::PreviewEvent preview;
  preview.set_seed(setup_.seed);
  preview.set_step(step);
  PLUMBLINE_ASSIGN_OR_RETURN(
      *preview.mutable_png(),
      LatentPreview({setup_.weights.config().in_channels, layout.latent_frames,
                     layout.latent_height, layout.latent_width},
                    state_->target_video()));
  environment_.on_preview(preview);
  return absl::OkStatus();
}

absl::Status GenerationRun::CheckInputs(const v1::StepRecord& record, const TensorDigests& inputs) {
  if (record.input_digest() ==
      StepInputDigest(setup_.run_identity.sha256(), state_->step(), inputs)) {
    return absl::OkStatus();
  }
  const std::string tensor = FirstDifference(inputs, record.inputs());
  if (!tensor.empty()) {
    return Inconsistent(tensor, "the saved step was computed from another one than this run has");
  }
  return Inconsistent("input_digest", "the saved step is of another run or another step");
}

void GenerationRun::CheckTrace(const v1::StepRecord& record) {
  const std::map<std::string, int> not_run =
      drift::NodesNotRun(record.trace(), static_cast<int>(setup_.weights.config().num_layers));
  if (!not_run.empty()) {
    Judge(absl::StrCat("step.", state_->step(), "/", not_run.begin()->first), "executed");
  }
}

absl::Status GenerationRun::Inconsistent(absl::string_view tensor, absl::string_view what) {
  inconsistency_ = {state_->step(), std::string(tensor)};
  return WithReason(
      absl::DataLossError(absl::StrCat(run_, ": step ", state_->step(), ": ", tensor, ": ", what)),
      "STEP_INCONSISTENT");
}

void GenerationRun::Judge(std::string entry, std::string gate) {
  if (failure_.has_value()) return;
  failure_.emplace();
  failure_->set_entry(std::move(entry));
  failure_->set_gate(std::move(gate));
  failure_->set_where(absl::StrCat("seed ", setup_.seed));
}

absl::Status GenerationRun::CheckYield() const {
  if (!environment_.should_yield || !environment_.should_yield()) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("handed back before step ", state_->step(), " of ", setup_.Steps()));
}

void GenerationRun::SendAcknowledged() {
  for (const v1::StepRecord& record : store_->TakeAcknowledged()) {
    SendStep(record.index(), computed_[record.index()], record.seconds());
  }
}

void GenerationRun::SendStep(int32_t step, v1::StepOrigin origin, double seconds) const {
  if (!environment_.on_step) return;
  v1::StepEvent event;
  event.set_seed(setup_.seed);
  event.set_run(run_);
  event.set_step(step);
  event.set_total(setup_.Steps());
  event.set_origin(origin);
  event.set_seconds(seconds);
  event.set_saved(true);
  environment_.on_step(event);
}

void GenerationRun::SendProgress(absl::string_view activity) const {
  v1::Progress progress;
  progress.set_done(state_->step());
  progress.set_total(setup_.Steps());
  progress.set_unit("steps");
  progress.set_activity(activity.empty() ? absl::StrCat("seed ", setup_.seed)
                                         : absl::StrCat("seed ", setup_.seed, ": ", activity));
  context_.on_progress(progress);
}

}  // namespace plumbline::jobs
