#ifndef PLUMBLINE_SERVER_SCHEDULER_GATE_H_
#define PLUMBLINE_SERVER_SCHEDULER_GATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "proto/plumbline/v1/job.pb.h"

// Whether a full-model job authorises a generation.

namespace plumbline::server {

// What its specification says before it has run: FAILED_PRECONDITION, GATE_NOT_PASSED for a
// negative control and IDENTITY_DIFFERS for another composition than the generation's.
absl::Status CheckGateSpec(const v1::Job& gate, const v1::JobSpec& generation);

// The one numerical identity that a finished gate's tasks ran under. FAILED_PRECONDITION:
// GATE_NOT_PASSED where it did not run to its end, did not pass or says no identity,
// IDENTITY_DIFFERS where its tasks ran under several. `identities`: its tasks', in order.
absl::StatusOr<v1::NumericalIdentity> CertifiedBy(
    const v1::Job& gate, const std::vector<v1::NumericalIdentity>& identities);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_GATE_H_
