#ifndef PLUMBLINE_SERVER_STORE_RUN_IDENTITY_H_
#define PLUMBLINE_SERVER_STORE_RUN_IDENTITY_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/plumbline/v1/identity.pb.h"

namespace plumbline::server {

using IdentityParts = google::protobuf::RepeatedPtrField<v1::IdentityPart>;

// A precondition of type IDENTITY for each part that only one of the two has or that differs,
// sorted by name. `subject`: what `stored` is the identity of, e.g. "runs/RUN".
std::vector<Precondition> DifferingParts(const IdentityParts& stored, const IdentityParts& other,
                                         absl::string_view subject);

// FAILED_PRECONDITION with `reason`, naming every part that differs, unless all are equal.
absl::Status CheckSameParts(const IdentityParts& stored, const IdentityParts& other,
                            absl::string_view subject, absl::string_view reason);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_RUN_IDENTITY_H_
