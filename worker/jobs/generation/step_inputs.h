#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_STEP_INPUTS_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_STEP_INPUTS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "kernels/tensor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/h3/packed_layout.h"

// The tensors that one evaluation of the transformer reads.

namespace plumbline::jobs {

// What one evaluation reads, in the host's memory, batch 1. Owns nothing.
struct StepInputs {
  Tensor video;  // "input.hidden_states": keyframes' rows, then the target's, float32.
  Tensor audio;  // "input.audio_hidden_states", float32.
  Tensor text;   // "input.encoder_hidden_states", float32.
  const h3::PackedLayout* layout = nullptr;  // With the step's timesteps.
};

// Every input of the transformer's graph by its name there, in an order that never changes.
std::vector<std::pair<absl::string_view, Tensor>> GraphInputs(const StepInputs& inputs);

using TensorDigests = google::protobuf::RepeatedPtrField<v1::TensorDigest>;

// By the bytes of a dense tensor in the host's memory; the shape is (rows, width).
v1::TensorDigest DigestTensor(absl::string_view name, const Tensor& tensor);

// Digests the inputs of a run's steps, which common/step_digest.h makes a step's key of. Those that
// are the same at every step are digested once. One thread at a time.
class StepInputDigester {
 public:
  TensorDigests Digest(const StepInputs& inputs);

 private:
  std::map<std::string, v1::TensorDigest, std::less<>> constant_;
};

// The first tensor that only one of the two has, or that differs; empty if none does.
std::string FirstDifference(const TensorDigests& inputs, const TensorDigests& recorded);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_STEP_INPUTS_H_
