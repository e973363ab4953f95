#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_STEP_INPUTS_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_STEP_INPUTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_field.h"
#include "kernels/tensor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/h3/packed_layout.h"

// The tensors that one evaluation of the transformer reads, and the digest that a saved step is
// keyed by.

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

// By the bytes of a dense tensor in the host's memory; the shape is (rows, width).
v1::TensorDigest DigestTensor(absl::string_view name, const Tensor& tensor);

// Digests the inputs of a run's steps. Those that are the same at every step are digested once. One
// thread at a time.
class StepInputDigester {
 public:
  std::vector<v1::TensorDigest> Digest(const StepInputs& inputs);

 private:
  std::map<std::string, v1::TensorDigest, std::less<>> constant_;
};

// Hex SHA-256 of these lines, each ended by "\n":
//   plumbline-step-input-1
//   the run identity's SHA-256
//   the step's index
//   NAME DTYPE SHAPE SHA256   for each tensor, in the order of GraphInputs; SHAPE joined by "x"
std::string InputDigest(absl::string_view run_identity, int32_t step,
                        absl::Span<const v1::TensorDigest> inputs);

// The first tensor that only one of the two has, or that differs; empty if none does.
std::string FirstDifference(absl::Span<const v1::TensorDigest> inputs,
                            const google::protobuf::RepeatedPtrField<v1::TensorDigest>& recorded);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_STEP_INPUTS_H_
