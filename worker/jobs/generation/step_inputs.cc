#include "worker/jobs/generation/step_inputs.h"

#include <algorithm>

#include "common/sha256.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

// What a step changes of its inputs.
constexpr absl::string_view kPerStep[] = {"input.hidden_states", "input.audio_hidden_states",
                                          "timestep", "adaln_indices", "timestep_indices"};

bool IsConstant(absl::string_view name) {
  return std::find(std::begin(kPerStep), std::end(kPerStep), name) == std::end(kPerStep);
}

bool SameTensor(const v1::TensorDigest& a, const v1::TensorDigest& b) {
  return a.name() == b.name() && a.dtype() == b.dtype() && a.sha256() == b.sha256() &&
         std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
}

}  // namespace

std::vector<std::pair<absl::string_view, Tensor>> GraphInputs(const StepInputs& inputs) {
  const h3::PackedLayout& layout = *inputs.layout;
  return {{"input.hidden_states", inputs.video},
          {"input.audio_hidden_states", inputs.audio},
          {"input.encoder_hidden_states", inputs.text},
          {"timestep", VectorView(layout.timestep, DType::kF32, 1)},
          {"position_ids", VectorView(layout.position_ids, DType::kF64, 3)},
          {"adaln_indices", VectorView(layout.adaln_indices, DType::kI64, 1)},
          {"timestep_indices", VectorView(layout.timestep_indices, DType::kI64, 1)},
          {"text_indices", VectorView(layout.text_indices, DType::kI64, 1)},
          {"video_indices", VectorView(layout.video_indices, DType::kI64, 1)},
          {"audio_indices", VectorView(layout.audio_indices, DType::kI64, 1)}};
}

v1::TensorDigest DigestTensor(absl::string_view name, const Tensor& tensor) {
  v1::TensorDigest digest;
  digest.set_name(std::string(name));
  digest.set_dtype(std::string(DTypeName(tensor.dtype)));
  digest.add_shape(tensor.rows);
  digest.add_shape(tensor.width);
  digest.set_size_bytes(static_cast<int64_t>(tensor.NumBytes()));
  digest.set_sha256(
      Sha256Hex(absl::MakeConstSpan(static_cast<const uint8_t*>(tensor.data), tensor.NumBytes())));
  return digest;
}

TensorDigests StepInputDigester::Digest(const StepInputs& inputs) {
  TensorDigests digests;
  for (const auto& [name, tensor] : GraphInputs(inputs)) {
    const auto known = constant_.find(name);
    if (known != constant_.end()) {
      *digests.Add() = known->second;
      continue;
    }
    *digests.Add() = DigestTensor(name, tensor);
    if (IsConstant(name)) constant_.emplace(std::string(name), *digests.rbegin());
  }
  return digests;
}

std::string FirstDifference(const TensorDigests& inputs, const TensorDigests& recorded) {
  for (int i = 0; i < std::max(inputs.size(), recorded.size()); ++i) {
    if (i >= inputs.size()) return recorded[i].name();
    if (i >= recorded.size() || !SameTensor(inputs[i], recorded[i])) return inputs[i].name();
  }
  return "";
}

}  // namespace plumbline::jobs
