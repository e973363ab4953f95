#ifndef PLUMBLINE_WORKER_JOBS_IDENTITY_H_
#define PLUMBLINE_WORKER_JOBS_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "worker/jobs/job.h"

namespace plumbline::jobs {

// What decides the numbers of `composition`, in canonical form, on this worker's device, of the
// checkpoint that WeightSource::Identity() names.
absl::StatusOr<v1::NumericalIdentity> IdentityOf(absl::string_view composition,
                                                 absl::string_view checkpoint,
                                                 const JobEnvironment& environment);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_IDENTITY_H_
