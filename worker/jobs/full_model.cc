#include "worker/jobs/full_model.h"

#include <memory>

#include "common/status.h"
#include "worker/jobs/full_model_run.h"
#include "worker/jobs/full_model_setup.h"

namespace plumbline::jobs {

absl::StatusOr<JobResult> RunFullModel(const v1::JobSpec& spec, const FullModelFiles& files,
                                       const h3::WeightSource& weights,
                                       const JobEnvironment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<FullModelSetup> setup,
                             FullModelSetup::Make(spec, files, weights, environment));
  return FullModelRun(*setup).Run();
}

}  // namespace plumbline::jobs
