#ifndef PLUMBLINE_SERVER_API_GENERATION_REFERENCES_H_
#define PLUMBLINE_SERVER_API_GENERATION_REFERENCES_H_

#include "absl/status/status.h"
#include "server/api/api.h"
#include "server/scheduler/dispatcher.h"

namespace plumbline::server {

// Looks up what a checked specification refers to, and puts what its tasks need of it into `job`:
// the identity that the gate certified and the runs to compare with. INVALID_ARGUMENT names a field
// that refers to nothing, or to another kind of thing; FAILED_PRECONDITION says why a gate does not
// authorise the generation (GATE_NOT_PASSED; IDENTITY_DIFFERS with a precondition for each part)
// or what a job to compare with lacks (AGAINST_NOT_FINISHED, DEPENDENCY_FAILED). Jobs that have not
// ended are waited for instead. Blocks on the disk.
absl::Status ResolveReferences(const Api& api, NewJob* job);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_GENERATION_REFERENCES_H_
