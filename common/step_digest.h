#ifndef PLUMBLINE_COMMON_STEP_DIGEST_H_
#define PLUMBLINE_COMMON_STEP_DIGEST_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace plumbline::v1 {
class TensorDigest;
}  // namespace plumbline::v1

namespace plumbline {

// The input digest of a step, hex: SHA-256 of these lines, each ended by a line feed, tensors
// sorted by name:
//   plumbline-step-1
//   run RUN_SHA256
//   step INDEX
//   tensor NAME DTYPE DIM,DIM,... TENSOR_SHA256
// `inputs`: every tensor that the step's transformer call reads. The worker makes it, and the
// coordinator makes it anew when a run is adopted under another identity.
std::string StepInputDigest(absl::string_view run_sha256, int32_t index,
                            const google::protobuf::RepeatedPtrField<v1::TensorDigest>& inputs);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_STEP_DIGEST_H_
