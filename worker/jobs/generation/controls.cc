#include "worker/jobs/generation/controls.h"

#include <memory>
#include <utility>

#include "common/status.h"
#include "common/step_digest.h"
#include "worker/jobs/generation/state.h"
#include "worker/jobs/generation/step_bytes.h"
#include "worker/jobs/generation/step_inputs.h"
#include "worker/jobs/generation/transformer_calls.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

// The first step of a run as it is saved.
absl::StatusOr<steps::SavedStep> ComputeFirstStep(const GenerationSetup& setup) {
  PLUMBLINE_ASSIGN_OR_RETURN(const GenerationState state, GenerationState::Start(setup));
  const StepInputs inputs = state.Inputs();
  PLUMBLINE_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransformerCalls> calls,
      TransformerCalls::Make(setup.graph, setup.resolved, setup.weights, setup.environment.context,
                             /*ignores_text=*/false, RowsOf(*inputs.layout)));
  PLUMBLINE_ASSIGN_OR_RETURN(const Velocities velocities, calls->Evaluate(inputs));
  steps::SavedStep step = MakeSavedStep(inputs, velocities);
  *step.record.mutable_inputs() = StepInputDigester().Digest(inputs);
  step.record.set_input_digest(
      StepInputDigest(setup.run_identity.sha256(), 0, step.record.inputs()));
  *step.record.mutable_trace() = calls->Trace();
  return step;
}

}  // namespace

absl::Status PlantFault(const GenerationSetup& setup, steps::MemoryStepStore* store) {
  const bool other_seed = setup.fault->name == "step-other-seed";
  if (!other_seed && setup.fault->name != "step-bit-flip") return absl::OkStatus();
  std::unique_ptr<GenerationSetup> other;
  if (other_seed) {
    // Of a noise file all seeds begin alike, so the other one draws.
    GenerationFiles files = setup.files;
    files.noise.clear();
    const GenerationSetup::Request request = {setup.spec, setup.composition.ToString(),
                                              /*inject=*/"", /*save_tensors=*/false,
                                              setup.seed + 1};
    PLUMBLINE_ASSIGN_OR_RETURN(
        other, GenerationSetup::Make(request, files, setup.weights, setup.environment));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(steps::SavedStep step, ComputeFirstStep(other_seed ? *other : setup));
  if (!other_seed) step.tensors[0][step.tensors[0].size() / 2] ^= 1;
  store->Put({setup.run_identity, setup.seed, setup.Steps(), setup.preflight()}, std::move(step));
  return absl::OkStatus();
}

}  // namespace plumbline::jobs
