// The rows of a self-test. Internal to selftest.cc.
#ifndef PLUMBLINE_WORKER_SELFTEST_CHECKS_H_
#define PLUMBLINE_WORKER_SELFTEST_CHECKS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "worker/jobs/job.h"
#include "worker/selftest/selftest.h"

namespace plumbline::selftest {

// What came out of a check, in `found` and `passed` of its row. An error fails the row, or, if it
// is CANCELLED, ends the self-test.
struct Outcome {
  Outcome() = default;
  Outcome(std::string found, bool passed) : found(std::move(found)), passed(passed) {}

  std::string found;
  bool passed = false;
  std::string skipped;  // Why it could not be asked of this device; then it counts neither way.
};

struct Check {
  v1::SelftestReport::Row row;  // Without what is found.
  std::function<absl::StatusOr<Outcome>()> run;
};

// What checks run with; outlives them.
struct Bench {
  const jobs::JobEnvironment& environment;  // of the self-test's task
  RunJobFunction run_job;
  std::string golden_folder;  // where the captures lie

  std::string Golden(absl::string_view name) const;
  // Runs a job in a folder of its own. Input files with a `worker_path` are captures by name.
  absl::StatusOr<jobs::JobResult> Run(const v1::JobSpec& spec) const;
};

// Each appends checks in the order in which they are listed.
void AddCaptureChecks(const Bench& bench, std::vector<Check>* checks);
void AddMediaChecks(const Bench& bench, std::vector<Check>* checks);
void AddControlChecks(const Bench& bench, std::vector<Check>* checks);

// A generation of the captured case, its conditioning file made from captures.
absl::StatusOr<v1::JobSpec> CapturedGeneration(const Bench& bench);

v1::SelftestReport::Row Row(absl::string_view name, absl::string_view kind,
                            absl::string_view job_kind, absl::string_view expected);

}  // namespace plumbline::selftest

#endif  // PLUMBLINE_WORKER_SELFTEST_CHECKS_H_
