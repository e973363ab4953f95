#include "server/api/comparison_sides.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/api/job_reads.h"

namespace plumbline::server {
namespace {

using Pair = v1::ComparisonSpec::GenerationPair;

absl::Status FillSide(const Api& api, const Pair& pair, Pair::Side* side) {
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t number, FindJob(api, side->job(), "job"));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<store::TaskRecord> tasks,
                             api.store->ReadTasks(number));
  for (size_t i = 0; i < tasks.size(); ++i) {
    const v1::GenerationSpec& generation = tasks[i].spec().generation();
    if (generation.seeds_size() != 1 || generation.seeds(0) != pair.seeds(0)) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::TaskReport report,
                               api.store->ReadReport({number, static_cast<int32_t>(i)}));
    side->set_run(report.generation().run());
    side->set_composition(report.composition());
    side->set_not_decoded(report.generation().not_decoded());
    *side->mutable_noise() = report.generation().noise();
    *side->mutable_bounds() = report.generation().contract().bounds();
    if (generation.against() == pair.b()) {
      *side->mutable_latent_drift() = report.generation().latent_drift();
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<v1::Artifact> artifacts,
                               api.store->ReadArtifactsOf(number));
    for (const v1::Artifact& artifact : artifacts) {
      if (artifact.role() == v1::ARTIFACT_ROLE_FRAMES &&
          artifact.task() == tasks[i].task().name()) {
        side->mutable_media()->set_artifact(artifact.name());
      }
    }
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("there is no seed ", pair.seeds(0)));
}

}  // namespace

void FillSides(const Api& api, Pair* pair) {
  const auto fill = [&](const std::string& job, Pair::Side* side) {
    side->set_job(job);
    const absl::Status filled = FillSide(api, *pair, side);
    if (!filled.ok()) side->set_not_decoded(std::string(filled.message()));
  };
  fill(pair->a(), pair->mutable_side_a());
  fill(pair->b(), pair->mutable_side_b());
  for (const std::string& job : pair->spread()) fill(job, pair->add_side_spread());
  if (!pair->repeat().empty()) fill(pair->repeat(), pair->mutable_side_repeat());
}

}  // namespace plumbline::server
