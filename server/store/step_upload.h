#ifndef PLUMBLINE_SERVER_STORE_STEP_UPLOAD_H_
#define PLUMBLINE_SERVER_STORE_STEP_UPLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/sha256.h"
#include "proto/plumbline/v1/worker_service.pb.h"

namespace plumbline::server {

// Checks everything that can be checked of a step's header alone; errors name the field below
// `header`. Without a record it is that of a run without a step.
absl::Status CheckStepHeader(const v1::PutStepRequest::Header& header);

// The bytes of a step while they arrive in pieces: its outputs, one after the other. One thread at
// a time.
class StepUpload {
 public:
  // `header` was checked.
  explicit StepUpload(const v1::PutStepRequest::Header& header) : record_(header.record()) {
    outputs_.reserve(record_.outputs_size());
  }

  // INVALID_ARGUMENT for more bytes than the outputs have; DATA_LOSS (reason DIGEST_MISMATCH) for
  // an output with other bytes than its digest says.
  absl::Status Append(absl::string_view bytes);

  // Everything is there and is what the trailer says: DATA_LOSS (DIGEST_MISMATCH) otherwise.
  absl::Status Finish(int64_t size_bytes, absl::string_view sha256);

  // In the order of the record's outputs.
  const std::vector<std::string>& outputs() const { return outputs_; }

 private:
  // Ends the outputs that have all their bytes.
  absl::Status EndOutputs();

  const v1::StepRecord record_;
  std::vector<std::string> outputs_;  // The last one may lack bytes.
  Sha256 output_digest_;
  Sha256 stream_digest_;
  int64_t size_bytes_ = 0;
  int ended_ = 0;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STEP_UPLOAD_H_
