#ifndef PLUMBLINE_SERVER_API_JOB_UPLOADS_H_
#define PLUMBLINE_SERVER_API_JOB_UPLOADS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/artifact.pb.h"
#include "server/store/record.pb.h"
#include "server/store/store.h"

namespace plumbline::server {

// Uploads that job `number` reads and no other job: they go with it. None of a generation, whose
// runs are replayed from its files after it is gone. Reads every job's record.
absl::StatusOr<std::vector<v1::Artifact>> UploadsOfJobAlone(const Store& store, int64_t number,
                                                            const store::JobRecord& record);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_JOB_UPLOADS_H_
