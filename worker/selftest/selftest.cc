#include "worker/selftest/selftest.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/selftest/checks.h"
#include "worker/selftest/golden_files.h"
#include "worker/steps/memory_step_store.h"

namespace plumbline::selftest {
namespace {

v1::Verdict Judge(const v1::SelftestReport& report) {
  v1::Verdict verdict;
  int failed = 0, captures = 0, controls = 0;
  for (const v1::SelftestReport::Row& row : report.rows()) {
    if (!row.skipped().empty()) continue;
    ++(row.kind() == "capture" ? captures : controls);
    if (row.passed()) continue;
    if (failed++ > 0) continue;
    verdict.mutable_first_failure()->set_entry(row.name());
    verdict.mutable_first_failure()->set_where(row.job_kind());
    verdict.set_sentence(absl::StrCat(row.name(), " (", row.job_kind(), ") gave ", row.found(),
                                      " where ", row.expected(), " is expected"));
  }
  verdict.set_outcome(failed > 0 ? v1::OUTCOME_FAILED : v1::OUTCOME_PASSED);
  verdict.set_sentence(failed > 0 ? absl::StrCat("FAILED: ", failed, " of ", report.rows_size(),
                                                 " checks, first ", verdict.sentence(), ".")
                                  : absl::StrCat("PASSED: ", captures, " captures and ", controls,
                                                 " controls as expected on ",
                                                 report.device().device_class(), "."));
  return verdict;
}

}  // namespace

v1::SelftestReport::Row Row(absl::string_view name, absl::string_view kind,
                            absl::string_view job_kind, absl::string_view expected) {
  v1::SelftestReport::Row row;
  row.set_name(std::string(name));
  row.set_kind(std::string(kind));
  row.set_job_kind(std::string(job_kind));
  row.set_expected(std::string(expected));
  return row;
}

std::string Bench::Golden(absl::string_view name) const {
  return absl::StrCat(golden_folder, "/", name);
}

absl::StatusOr<jobs::JobResult> Bench::Run(const v1::JobSpec& spec) const {
  jobs::JobEnvironment inner = environment;
  inner.context.on_node = [](const v1::NodeEvent&) {};
  inner.context.on_progress = [](const v1::Progress&) {};
  inner.context.on_rule_frozen = [](const v1::RuleFrozenEvent&) { return absl::OkStatus(); };
  inner.fetch = [this](const v1::InputFile& file,
                       absl::string_view) -> absl::StatusOr<std::string> {
    return Golden(file.worker_path());
  };
  inner.output_folder = absl::StrCat(environment.output_folder, "/run");
  std::error_code error;
  std::filesystem::remove_all(inner.output_folder, error);
  std::filesystem::create_directories(inner.output_folder, error);
  if (error) return FileError(inner.output_folder, "cannot be made", error.value());
  steps::MemoryStepStore steps;
  inner.generation = {};
  inner.generation.steps = &steps;
  inner.generation.on_run = [](const std::string&) {};
  inner.generation.on_step = [](const v1::StepEvent&) {};
  inner.generation.on_latent_drift = [](const v1::LatentDrift&) {};
  inner.generation.on_sensitivity = [](const v1::SensitivityCheck&) {};
  inner.generation.should_yield = [] { return false; };
  return run_job(spec, inner);
}

absl::StatusOr<jobs::JobResult> RunSelftest(const jobs::JobEnvironment& environment,
                                            const RunJobFunction& run_job) {
  const Bench bench{environment, run_job, absl::StrCat(environment.output_folder, "/golden")};
  std::error_code error;
  std::filesystem::create_directories(bench.golden_folder, error);
  if (error) return FileError(bench.golden_folder, "cannot be made", error.value());
  for (const GoldenFile& file : GoldenFiles()) {
    PLUMBLINE_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(bench.golden_folder, "/", file.name), file.contents));
  }
  std::vector<Check> checks;
  AddCaptureChecks(bench, &checks);
  AddMediaChecks(bench, &checks);
  AddControlChecks(bench, &checks);

  jobs::JobResult result;
  v1::SelftestReport& report = *result.report.mutable_selftest();
  const KernelIdentity& kernel = *environment.kernel_identity;
  report.mutable_kernel_identity()->set_sha256(kernel.sha256);
  report.mutable_kernel_identity()->set_compiler(kernel.compiler);
  report.mutable_kernel_identity()->set_flags(kernel.flags);
  report.mutable_kernel_identity()->set_architecture(kernel.architecture);
  const Device& device = *environment.context.device;
  report.mutable_device()->set_kind(device.kind() == DeviceKind::kCpu ? v1::DEVICE_KIND_CPU
                                                                      : v1::DEVICE_KIND_CUDA);
  report.mutable_device()->set_device_class(device.DeviceClass());
  report.mutable_device()->set_memory_bytes(device.MemoryBytes());

  v1::Progress progress;
  progress.set_unit("checks");
  progress.set_total(static_cast<int64_t>(checks.size()));
  for (Check& check : checks) {
    PLUMBLINE_RETURN_IF_ERROR(environment.context.check_cancelled());
    progress.set_activity(absl::StrCat(check.row.kind(), " ", check.row.name()));
    environment.context.on_progress(progress);
    const absl::StatusOr<Outcome> outcome = check.run();
    if (absl::IsCancelled(outcome.status())) return outcome.status();
    check.row.set_found(outcome.ok() ? outcome->found : std::string(outcome.status().message()));
    check.row.set_passed(outcome.ok() && outcome->passed);
    if (outcome.ok()) check.row.set_skipped(outcome->skipped);
    *report.add_rows() = check.row;
    progress.set_done(progress.done() + 1);
  }
  environment.context.on_progress(progress);
  *result.report.mutable_verdict() = Judge(report);
  return result;
}

}  // namespace plumbline::selftest
