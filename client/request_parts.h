#ifndef PLUMBLINE_CLIENT_REQUEST_PARTS_H_
#define PLUMBLINE_CLIENT_REQUEST_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/job_request.h"
#include "google/protobuf/repeated_field.h"

// What requests of several kinds are made of. Each fills in a part of a request and notes which
// flag it came from.

namespace plumbline::client {

void FillCheckpoint(const std::string& written, PathStyle paths, JobRequest* request,
                    absl::string_view flag = "--checkpoint");

absl::Status FillJobFlags(const JobFlags& flags, JobRequest* request);

// One flag that names an input file.
absl::Status FillInput(absl::string_view flag, absl::string_view field, const std::string& written,
                       const InputResolver& resolve, v1::InputFile* input, FlagNames* names);

bool HasCaptures(const CaptureFlags& flags);
// Whether one of them must be uploaded.
bool HasUploads(const CaptureFlags& flags);
bool IsUpload(absl::string_view written);

// `field` is the capture set's, e.g. "block_replay.captures".
absl::Status FillCaptures(const CaptureFlags& flags, absl::string_view field,
                          const InputResolver& resolve, v1::CaptureSet* captures, FlagNames* names);

// --seeds: "0..9", "1,4,7..9". `field` is the list's.
absl::Status FillSeeds(const std::string& written, absl::string_view field,
                       google::protobuf::RepeatedField<uint64_t>* to, FlagNames* names);

// --layouts, then --layout. `field` is the list's.
absl::Status FillLayouts(const std::vector<std::string>& layouts,
                         const std::vector<std::string>& layout, absl::string_view field,
                         google::protobuf::RepeatedPtrField<v1::Layout>* to, FlagNames* names);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_REQUEST_PARTS_H_
