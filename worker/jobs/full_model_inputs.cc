#include "worker/jobs/full_model_inputs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

constexpr char kLayoutsField[] = "full_model.layouts";
constexpr char kCapturesField[] = "full_model.captures.";

// Inputs of the graph, and the outputs with the gradients that reach them.
constexpr absl::string_view kGraphInputs[] = {"input.hidden_states",
                                              "input.audio_hidden_states",
                                              "input.encoder_hidden_states",
                                              "timestep",
                                              "position_ids",
                                              "adaln_indices",
                                              "timestep_indices",
                                              "text_indices",
                                              "video_indices",
                                              "audio_indices"};
constexpr std::pair<absl::string_view, absl::string_view> kUpstreams[] = {
    {"output.video", "upstream.video"}, {"output.audio", "upstream.audio"}};

// The float tensors of the inputs by name.
std::vector<std::pair<absl::string_view, const h3::HostTensor*>> FloatTensors(
    const h3::FullModelInputs& inputs) {
  return {{"input.hidden_states", &inputs.video},
          {"input.audio_hidden_states", &inputs.audio},
          {"input.encoder_hidden_states", &inputs.text},
          {"upstream.video", &inputs.upstream_video},
          {"upstream.audio", &inputs.upstream_audio}};
}

bool HoldsInputs(const SafetensorsFile& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (h3::IsFullModelInputName(tensor.name)) return true;
  }
  return false;
}

// The name of an input that differs, or "".
std::string DifferingInput(const h3::FullModelInputs& a, const h3::FullModelInputs& b) {
  if (!SameLayout(a.layout, b.layout)) return "the packed layout";
  const auto tensors_a = FloatTensors(a);
  const auto tensors_b = FloatTensors(b);
  for (size_t i = 0; i < tensors_a.size(); ++i) {
    if (tensors_a[i].second->Bytes() != tensors_b[i].second->Bytes()) {
      return std::string(tensors_a[i].first);
    }
  }
  return "";
}

// Reads the inputs of every capture that has some; they must agree. Returns whether there were any.
absl::StatusOr<bool> ReadCapturedInputs(const FullModelCaptures& captures,
                                        const h3::TransformerConfig& config,
                                        h3::FullModelInputs* inputs) {
  std::vector<std::pair<std::string, const SafetensorsFile*>> files = {
      {"inputs", captures.inputs.get()},
      {"golden", captures.golden.get()},
      {"candidate", captures.candidate.get()}};
  for (const auto& [name, file] : captures.providers) {
    files.emplace_back(absl::StrCat("providers[", name, "]"), file.get());
  }
  bool found = false;
  for (const auto& [name, file] : files) {
    if (file == nullptr || (name != "inputs" && !HoldsInputs(*file))) continue;
    const std::string field = absl::StrCat(kCapturesField, name);
    absl::StatusOr<h3::FullModelInputs> read =
        h3::ReadFullModelInputs(*file, config, /*with_upstream=*/true);
    if (!read.ok()) return AnnotateStatus(read.status(), field);
    if (!found) {
      *inputs = *std::move(read);
    } else if (const std::string differing = DifferingInput(*inputs, *read); !differing.empty()) {
      return FieldError(field,
                        absl::StrCat("its inputs differ from another capture's in ", differing),
                        "captures of the same inputs");
    }
    found = true;
  }
  return found;
}

}  // namespace

absl::StatusOr<FullModelCaptures> OpenFullModelCaptures(const FullModelFiles& files) {
  FullModelCaptures captures;
  PLUMBLINE_ASSIGN_OR_RETURN(captures.inputs,
                             OpenCapture(absl::StrCat(kCapturesField, "inputs"), files.inputs));
  PLUMBLINE_ASSIGN_OR_RETURN(captures.golden,
                             OpenCapture(absl::StrCat(kCapturesField, "golden"), files.golden));
  PLUMBLINE_ASSIGN_OR_RETURN(
      captures.candidate, OpenCapture(absl::StrCat(kCapturesField, "candidate"), files.candidate));
  for (const auto& [name, path] : files.providers) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        captures.providers[name],
        OpenCapture(absl::StrCat(kCapturesField, "providers[", name, "]"), path));
  }
  return captures;
}

std::string FullModelRunInputs::Sha256() const {
  std::map<std::string, std::string> digests = LayoutDigests(values.layout);
  for (const auto& [name, tensor] : FloatTensors(values)) {
    digests[std::string(name)] = Sha256Hex(tensor->Bytes());
  }
  std::string lines;
  for (const auto& [name, digest] : digests) absl::StrAppend(&lines, name, " ", digest, "\n");
  return Sha256Hex(lines);
}

absl::StatusOr<FullModelRunInputs> MakeFullModelInputs(const v1::FullModelSpec& spec,
                                                       const FullModelCaptures& captures,
                                                       const h3::TransformerConfig& config) {
  FullModelRunInputs inputs;
  PLUMBLINE_ASSIGN_OR_RETURN(const bool captured,
                             ReadCapturedInputs(captures, config, &inputs.values));
  PLUMBLINE_ASSIGN_OR_RETURN(
      RunLayout chosen,
      ChooseLayout(spec.layouts(), kLayoutsField, captured ? &inputs.values.layout : nullptr));
  inputs.label = std::move(chosen.label);
  inputs.layout = std::move(chosen.layout);
  if (captured) {
    inputs.values.layout = std::move(chosen.packed);
    return inputs;
  }
  PLUMBLINE_ASSIGN_OR_RETURN(inputs.values,
                             h3::StandInFullModelInputs(config, chosen.packed, h3::kStandInSeed));
  return inputs;
}

absl::StatusOr<DeviceModelInputs> DeviceModelInputs::Make(Device& device,
                                                          const h3::FullModelInputs& inputs) {
  DeviceModelInputs result(&device);
  const h3::PackedLayout& layout = inputs.layout;
  std::vector<std::pair<absl::string_view, Tensor>> tensors = {
      {"timestep", VectorView(layout.timestep, DType::kF32, 1)},
      {"position_ids", VectorView(layout.position_ids, DType::kF64, 3)},
      {"adaln_indices", VectorView(layout.adaln_indices, DType::kI64, 1)},
      {"timestep_indices", VectorView(layout.timestep_indices, DType::kI64, 1)},
      {"text_indices", VectorView(layout.text_indices, DType::kI64, 1)},
      {"video_indices", VectorView(layout.video_indices, DType::kI64, 1)},
      {"audio_indices", VectorView(layout.audio_indices, DType::kI64, 1)}};
  for (const auto& [name, tensor] : FloatTensors(inputs)) {
    tensors.emplace_back(name, tensor->tensor);
  }
  for (const auto& [name, tensor] : tensors) {
    PLUMBLINE_RETURN_IF_ERROR(result.store_.PutHost(name, tensor));
  }
  return result;
}

absl::Status DeviceModelInputs::Set(h3::Executor& executor) const {
  for (absl::string_view name : kGraphInputs) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store_.Find(name));
    PLUMBLINE_RETURN_IF_ERROR(executor.SetInput(name, tensor));
  }
  for (const auto& [output, name] : kUpstreams) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store_.Find(name));
    PLUMBLINE_RETURN_IF_ERROR(executor.SetUpstream(output, tensor));
  }
  return absl::OkStatus();
}

}  // namespace plumbline::jobs
