#include "server/scheduler/gate.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/store/run_identity.h"

namespace plumbline::server {
namespace {

absl::Status NotPassed(const std::string& message) {
  return WithReason(absl::FailedPreconditionError(message), "GATE_NOT_PASSED");
}

}  // namespace

absl::Status CheckGateSpec(const v1::Job& gate, const v1::JobSpec& generation) {
  if (!gate.spec().inject().empty()) {
    return NotPassed(
        absl::StrCat(gate.name(), " is a negative control, of ", gate.spec().inject()));
  }
  // The rest of the identity is known where the task runs: the worker compares all of it.
  const std::string& composition = gate.spec().composition();
  if (composition == generation.composition()) return absl::OkStatus();
  const Precondition differs{"IDENTITY", absl::StrCat(gate.name(), ": composition"),
                             absl::StrCat("is ", Quoted(composition), " there and ",
                                          Quoted(generation.composition()), " here")};
  return WithReason(WithPreconditions(absl::FailedPreconditionError(
                                          absl::StrCat(differs.subject, " ", differs.description)),
                                      {differs}),
                    "IDENTITY_DIFFERS");
}

absl::StatusOr<v1::NumericalIdentity> CertifiedBy(
    const v1::Job& gate, const std::vector<v1::NumericalIdentity>& identities) {
  if (gate.state() != v1::JOB_STATE_SUCCEEDED) {
    return NotPassed(absl::StrCat(gate.name(), " has not run to its end"));
  }
  if (gate.verdict().outcome() != v1::OUTCOME_PASSED) {
    return NotPassed(absl::StrCat(gate.name(), " did not pass: ", gate.verdict().sentence()));
  }
  v1::NumericalIdentity certified;
  for (size_t i = 0; i < identities.size(); ++i) {
    if (identities[i].sha256().empty()) {
      return NotPassed(absl::StrCat(gate.name(), "/tasks/", i, " says no numerical identity"));
    }
    if (i == 0) certified = identities[i];
    PLUMBLINE_RETURN_IF_ERROR(
        CheckSameParts(certified.parts(), identities[i].parts(), gate.name(), "IDENTITY_DIFFERS"));
  }
  return certified;
}

}  // namespace plumbline::server
