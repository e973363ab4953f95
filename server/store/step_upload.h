#ifndef PLUMBLINE_SERVER_STORE_STEP_UPLOAD_H_
#define PLUMBLINE_SERVER_STORE_STEP_UPLOAD_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/artifact.pb.h"
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
  explicit StepUpload(const v1::PutStepRequest::Header& header) : record_(header.record()) {}

  // INVALID_ARGUMENT for more bytes than the outputs have.
  absl::Status Append(std::string bytes);

  // All bytes have come. DATA_LOSS (reason DIGEST_MISMATCH) unless they are as many as the trailer
  // and the record say.
  absl::Status Finish(const v1::StreamTrailer& trailer);

  // Only after Finish: DATA_LOSS (DIGEST_MISMATCH) unless all digests, the trailer's and each
  // output's, are those of the bytes. Apart from Finish because it takes as long as writing them.
  absl::Status CheckDigests() const;

  // The bytes of each of the record's outputs, piece after piece. The upload owns them.
  const std::vector<std::vector<absl::string_view>>& outputs() const { return outputs_; }

 private:
  // Begins every output that the ones before it leave room for.
  void BeginOutputs();

  const v1::StepRecord record_;
  std::deque<std::string> chunks_;  // Their bytes stay where they are.
  std::vector<std::vector<absl::string_view>> outputs_;
  int64_t missing_bytes_ = 0;  // Of the last output.
  int64_t size_bytes_ = 0;
  std::string trailer_sha256_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STEP_UPLOAD_H_
