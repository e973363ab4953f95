// Every negative control: faults that the gates must find where they were put.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "worker/h3/layout.h"
#include "worker/jobs/layout_proto.h"
#include "worker/selftest/checks.h"

namespace plumbline::selftest {
namespace {

// The first of a sweep's layouts that shows what only long videos show.
absl::StatusOr<v1::Layout> LongLayout(int64_t least_frames) {
  for (absl::string_view sizes : SweepLayouts()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::LayoutSpec spec, h3::ParseLayout(sizes, "layout"));
    if (spec.latent_frames >= least_frames) return jobs::LayoutToProto(spec);
  }
  return absl::InternalError(absl::StrCat("no layout of a sweep has ", least_frames, " frames"));
}

absl::StatusOr<v1::JobSpec> SpecOf(const Bench& bench, const FaultInfo& fault) {
  v1::JobSpec spec;
  v1::Layout layout;
  if (fault.least_latent_frames > 0) {
    PLUMBLINE_ASSIGN_OR_RETURN(layout, LongLayout(fault.least_latent_frames));
  } else {
    layout.set_name("tiny");
  }
  if (fault.job == "block-replay") {
    spec.mutable_block_replay()->set_backward(true);
    *spec.mutable_block_replay()->add_layouts() = layout;
  } else if (fault.job == "full-model") {
    for (absl::string_view provider : ProviderVariants()) {
      spec.mutable_full_model()->add_providers(absl::StrCat("provider/", provider));
    }
    *spec.mutable_full_model()->add_layouts() = layout;
  } else {
    PLUMBLINE_ASSIGN_OR_RETURN(spec, CapturedGeneration(bench));
    spec.mutable_generation()->set_preflight(true);
  }
  spec.set_checkpoint("synthetic:tiny");
  spec.set_composition("candidate");
  spec.set_inject(std::string(fault.name));
  return spec;
}

std::string Place(absl::string_view entry, absl::string_view gate) {
  return gate.empty() ? std::string(entry) : absl::StrCat(entry, " (", gate, ")");
}

absl::StatusOr<Outcome> RunControl(const Bench& bench, const FaultInfo& fault) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::JobSpec spec, SpecOf(bench, fault));
  PLUMBLINE_ASSIGN_OR_RETURN(const jobs::JobResult result, bench.Run(spec));
  const v1::Verdict& verdict = result.report.verdict();
  const bool caught = result.report.has_control() && result.report.control().caught();
  if (!verdict.has_first_failure()) return Outcome{"every gate passed", false};
  return Outcome{Place(verdict.first_failure().entry(), verdict.first_failure().gate()), caught};
}

}  // namespace

void AddControlChecks(const Bench& bench, std::vector<Check>* checks) {
  for (absl::Span<const FaultInfo> faults : {Faults(), SweepFaults()}) {
    for (const FaultInfo& fault : faults) {
      checks->push_back(
          {Row(fault.name, "control", fault.job, Place(fault.expected_entry, fault.expected_gate)),
           [&bench, &fault] { return RunControl(bench, fault); }});
    }
  }
}

}  // namespace plumbline::selftest
