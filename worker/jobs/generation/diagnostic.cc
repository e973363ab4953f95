// The first-step diagnostic: one saved step replayed under any composition.
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/drift/compare.h"
#include "worker/drift/row_names.h"
#include "worker/h3/numerical_identity.h"
#include "worker/jobs/generation/generation.h"
#include "worker/jobs/generation/replay.h"
#include "worker/jobs/generation/state.h"
#include "worker/jobs/generation/step_bytes.h"
#include "worker/jobs/generation/transformer_calls.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

std::string PartOf(const v1::RunIdentity& identity, absl::string_view name) {
  for (const v1::IdentityPart& part : identity.parts()) {
    if (part.name() == name) return part.value();
  }
  return "";
}

// Whether everything that decides the numbers of an evaluation is as it was.
bool SameNumbers(const v1::RunIdentity& saved, const v1::NumericalIdentity& now) {
  std::map<std::string, std::string> saved_parts;
  for (const v1::IdentityPart& part : saved.parts()) {
    if (part.name() != "contract" && part.name() != "conditioning" && part.name() != "noise" &&
        part.name() != "seed") {
      saved_parts[part.name()] = part.value();
    }
  }
  std::map<std::string, std::string> parts;
  for (const v1::IdentityPart& part : now.parts()) parts[part.name()] = part.value();
  return h3::DifferingParts(saved_parts, parts).empty();
}

// Names the rows of a velocity by the packed rows that they belong to.
drift::RowNamer RowsAt(const h3::PackedLayout& layout, const std::vector<int64_t>& packed_rows) {
  return [name = drift::PackedRowNamer(layout), &packed_rows](int64_t batch, int64_t row) {
    v1::RowLocation location = name(batch, packed_rows[static_cast<size_t>(row)]);
    location.set_row(static_cast<int32_t>(row));
    return location;
  };
}

}  // namespace

absl::StatusOr<JobResult> RunDiagnostic(const v1::JobSpec& spec, const GenerationFiles& files,
                                        const h3::WeightSource& weights,
                                        const JobEnvironment& environment) {
  const v1::DiagnosticSpec& diagnostic = spec.diagnostic();
  steps::StepStore* const store = environment.generation.steps;
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Run run, store->GetRun(diagnostic.run()));
  const GenerationSetup::Request request = {diagnostic.generation(), spec.composition(),
                                            /*inject=*/"", /*save_tensors=*/false, run.seed()};
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<GenerationSetup> setup,
                             GenerationSetup::Make(request, files, weights, environment));
  if (diagnostic.step() < 0 || diagnostic.step() >= setup->Steps()) {
    return FieldError("diagnostic.step",
                      absl::StrCat(diagnostic.step(), " is no step of ", run.name()),
                      absl::StrCat("0 to ", setup->Steps() - 1));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const SavedPoint point,
                             ReplayTo(diagnostic.step(), run, *setup, store, "diagnostic.step"));

  const StepInputs inputs = point.state.Inputs();
  PLUMBLINE_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransformerCalls> calls,
      TransformerCalls::Make(setup->graph, setup->resolved, weights, environment.context,
                             /*ignores_text=*/false, RowsOf(*inputs.layout)));
  const absl::Time start = environment.context.clock->Now();
  PLUMBLINE_ASSIGN_OR_RETURN(const Velocities now, calls->Evaluate(inputs));

  JobResult result;
  v1::DiagnosticReport& report = *result.report.mutable_diagnostic();
  report.set_run(run.name());
  report.set_step(diagnostic.step());
  report.set_saved_composition(PartOf(run.identity(), "composition"));
  report.set_composition(setup->composition.ToString());
  report.set_same_identity(SameNumbers(run.identity(), setup->numerical_identity));
  report.set_seconds(absl::ToDoubleSeconds(environment.context.clock->Now() - start));
  ThreadPool own_threads(environment.threads);
  bool equal = true;
  std::string differing;
  const auto compare = [&](absl::string_view name, const std::vector<float>& saved,
                           const std::vector<float>& replayed, const Tensor& rows,
                           const std::vector<int64_t>& packed_rows) {
    v1::NamedComparison& velocity = *report.add_velocities();
    velocity.set_name(std::string(name));
    const std::vector<int64_t> shape = {rows.rows, rows.width};
    *velocity.mutable_comparison() = drift::CompareTensors(
        report.saved_composition(), drift::AsComparedTensor(saved.data(), DType::kF32, shape),
        report.composition(), drift::AsComparedTensor(replayed.data(), DType::kF32, shape),
        RowsAt(point.state.layout(), packed_rows), own_threads);
    if (equal && !velocity.comparison().bitwise_equal()) differing = std::string(name);
    equal &= velocity.comparison().bitwise_equal();
  };
  compare(kVideoVelocity, point.velocities.video, now.video, inputs.video,
          point.state.layout().video_indices);
  compare(kAudioVelocity, point.velocities.audio, now.audio, inputs.audio,
          point.state.layout().audio_indices);

  v1::Verdict& verdict = *result.report.mutable_verdict();
  const std::string where = absl::StrCat("step ", diagnostic.step(), " of seed ", run.seed());
  if (!report.same_identity()) {
    verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
    verdict.set_sentence(absl::StrCat("NOT JUDGED: ", where, ": ", report.composition(),
                                      " is not what saved it; the distance is shown."));
  } else if (equal) {
    verdict.set_outcome(v1::OUTCOME_PASSED);
    verdict.set_sentence(absl::StrCat("PASSED: ", where, ": replayed bit for bit."));
  } else {
    verdict.set_outcome(v1::OUTCOME_FAILED);
    v1::FirstFailure& first = *verdict.mutable_first_failure();
    first.set_entry(absl::StrCat("step.", diagnostic.step(), "/", differing));
    first.set_gate("identity");
    first.set_where(absl::StrCat("seed ", run.seed()));
    verdict.set_sentence(
        absl::StrCat("FAILED: ", where, ": first failure ", first.entry(), " (identity)."));
  }
  result.report.set_composition(report.composition());
  result.report.set_hybrid(setup->composition.IsHybrid());
  *result.report.mutable_identity() = setup->numerical_identity;
  return result;
}

}  // namespace plumbline::jobs
