#include "worker/jobs/generation/generation.h"

#include "common/status.h"
#include "worker/jobs/generation/controls.h"
#include "worker/jobs/generation/run.h"

namespace plumbline::jobs {

absl::StatusOr<JobResult> RunGeneration(const v1::JobSpec& spec, const GenerationFiles& files,
                                        const h3::WeightSource& weights,
                                        const JobEnvironment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const uint64_t seed, SeedOfTask(spec.generation()));
  GenerationSetup::Request request = {spec.generation(), spec.composition(), spec.inject(),
                                      spec.save_tensors(), seed};
  request.checkpoint = spec.checkpoint();
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<GenerationSetup> setup,
                             GenerationSetup::Make(request, files, weights, environment));
  PLUMBLINE_RETURN_IF_ERROR(setup->CheckAuthorised());
  if (setup->fault == nullptr) {
    return GenerationRun(*setup, environment.generation.steps).Run();
  }
  steps::MemoryStepStore store;
  PLUMBLINE_RETURN_IF_ERROR(PlantFault(*setup, &store));
  return GenerationRun(*setup, &store).Run();
}

}  // namespace plumbline::jobs
