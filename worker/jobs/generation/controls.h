#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_CONTROLS_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_CONTROLS_H_

#include "absl/status/status.h"
#include "worker/jobs/generation/setup.h"
#include "worker/steps/memory_step_store.h"

namespace plumbline::jobs {

// The negative controls of a generation run on a store of their own. Puts there what the fault of
// `setup` has in the place of the run's first step: the first step of another seed
// ("step-other-seed"), or the right one with a bit of its bytes flipped ("step-bit-flip"). A fault
// of the model ("text-ignored") puts nothing.
absl::Status PlantFault(const GenerationSetup& setup, steps::MemoryStepStore* store);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_CONTROLS_H_
