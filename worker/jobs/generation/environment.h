#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_ENVIRONMENT_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_ENVIRONMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/plumbline/v1/event.pb.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "worker/steps/step_store.h"

namespace plumbline::jobs {

// What a generation or a diagnostic needs of its worker and its task besides what every job does.
// Owns nothing; all of it outlives the task. The functions are called from the thread that runs it.
struct GenerationEnvironment {
  steps::StepStore* steps = nullptr;
  // Of the lease; for the log, and to tell a run that was there before from one that was resumed.
  int32_t attempt = 1;
  int64_t fencing_token = 0;
  // As in Assignment.
  std::optional<v1::NumericalIdentity> gate_identity;
  std::string against_run;
  std::vector<v1::SensitivityCheck> sensitivity;

  std::function<void(const std::string& run)> on_run;  // "runs/{run}", once it is known
  std::function<void(const v1::StepEvent&)> on_step;
  std::function<void(const v1::LatentDrift&)> on_latent_drift;
  std::function<void(const v1::SensitivityCheck&)> on_sensitivity;
  std::function<void(const v1::PreviewEvent&)> on_preview;
  // Whether the worker is to end: then no further step is begun, and the job ends with CANCELLED.
  std::function<bool()> should_yield;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_ENVIRONMENT_H_
