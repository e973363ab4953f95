#ifndef PLUMBLINE_WORKER_H3_PARAMETERS_H_
#define PLUMBLINE_WORKER_H3_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/dtype.h"
#include "worker/h3/config.h"

namespace plumbline::h3 {

// One parameter of a model as the released layout stores it.
struct ParameterSpec {
  std::string name;  // diffusers' name, e.g. "transformer_blocks.0.attn.to_q.weight".
  DType dtype = DType::kBF16;
  // A matrix (outputs, inputs), a vector (n) of one dimension, or a convolution's weight (outputs,
  // inputs, taps...).
  std::vector<int64_t> shape;

  int64_t NumElements() const;
  int64_t NumBytes() const { return NumElements() * static_cast<int64_t>(DTypeSize(dtype)); }
};

// "transformer_blocks.N." and "token_refiner.refiner_blocks.N.".
std::string BlockPrefix(int64_t block);
std::string RefinerBlockPrefix(int64_t block);

// The parameters of one block, or of one refiner block (which has no AdaLN), in the order in which
// reports list them. `prefix` is put before every name; without it the names are those that
// reports give the leaves of a block, e.g. "attn.to_q.weight". `config` must be valid.
std::vector<ParameterSpec> BlockParameters(const TransformerConfig& config,
                                           absl::string_view prefix);
std::vector<ParameterSpec> RefinerBlockParameters(const TransformerConfig& config,
                                                  absl::string_view prefix);

// Every parameter of the model, in execution order of the modules: input projections, timestep
// embedder, refiner, blocks, output heads. Float32 are proj_in, audio_proj_in, time_embedder,
// proj_out and audio_proj_out; the others are bfloat16. `config` must be valid.
std::vector<ParameterSpec> TransformerParameters(const TransformerConfig& config);

// Bytes of all parameters.
int64_t TotalParameterBytes(const std::vector<ParameterSpec>& parameters);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PARAMETERS_H_
