#ifndef PLUMBLINE_CLIENT_OUTPUT_CHECK_H_
#define PLUMBLINE_CLIENT_OUTPUT_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/job_request.h"

// Whether what is to be written can be written, asked before the work that would fill it: by trying
// to (common/output_path.h). Nothing stays of the trial.

namespace plumbline::client {

// INVALID_ARGUMENT with a violation of the flag for the first file or folder of the request's that
// cannot be written, that is what another flag reads or writes, or, of a folder, that holds
// something or is to; and for a bundle whose signing key is none.
absl::Status CheckOutputs(const JobRequest& request, const std::string& signing_key);

// The same of a folder that is to be made, with those above it, or is empty.
absl::Status CheckBundleFolder(absl::string_view flag, const std::string& folder);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_OUTPUT_CHECK_H_
