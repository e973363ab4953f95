#include "worker/jobs/replay_inputs.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"
#include "worker/jobs/layout_proto.h"

namespace plumbline::jobs {
namespace {

constexpr char kLayoutsField[] = "block_replay.layouts";
constexpr char kDefaultLayout[] = "tiny";
constexpr char kUpstream[] = "block.upstream";

absl::Status OpenInto(absl::string_view field, const std::string& path,
                      std::unique_ptr<SafetensorsFile>* file) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::Open(path);
  if (!opened.ok()) {
    return FieldError(absl::StrCat("block_replay.captures.", field), opened.status().message(),
                      "a safetensors file");
  }
  *file = std::make_unique<SafetensorsFile>(*std::move(opened));
  return absl::OkStatus();
}

bool HoldsInputs(const SafetensorsFile& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (h3::IsBlockInputName(tensor.name)) return true;
  }
  return false;
}

bool SameBytes(const h3::HostTensor& a, const h3::HostTensor& b) { return a.Bytes() == b.Bytes(); }

bool SameLayout(const h3::PackedLayout& a, const h3::PackedLayout& b) {
  return a.position_ids == b.position_ids && a.token_tags == b.token_tags &&
         a.video_indices == b.video_indices && a.audio_indices == b.audio_indices &&
         a.text_indices == b.text_indices && a.timestep == b.timestep &&
         a.timestep_indices == b.timestep_indices;
}

// The name of an input that differs, or "".
std::string DifferingInput(const h3::BlockInputs& a, const h3::BlockInputs& b) {
  if (!SameLayout(a.layout, b.layout)) return "the packed layout";
  if (!SameBytes(a.input, b.input)) return "block.input";
  if (!SameBytes(a.temb, b.temb)) return "block.temb";
  if (!SameBytes(a.upstream, b.upstream)) return kUpstream;
  return "";
}

absl::StatusOr<h3::PackedLayout> Build(const h3::LayoutSpec& spec) {
  return h3::BuildPackedLayout(spec, h3::kReplayVideoTimestep, h3::kReplayAudioTimestep);
}

// Reads the inputs of every capture that has some; they must agree. Returns whether there were any.
absl::StatusOr<bool> ReadCapturedInputs(const OpenCaptures& captures,
                                        const h3::TransformerConfig& config, bool backward,
                                        h3::BlockInputs* inputs) {
  const std::pair<absl::string_view, const SafetensorsFile*> files[] = {
      {"inputs", captures.inputs.get()},
      {"golden", captures.golden.get()},
      {"providers", captures.provider.get()},
      {"candidate", captures.candidate.get()}};
  bool found = false;
  for (const auto& [name, file] : files) {
    if (file == nullptr || (name != "inputs" && !HoldsInputs(*file))) continue;
    const std::string field = absl::StrCat("block_replay.captures.", name);
    absl::StatusOr<h3::BlockInputs> read = h3::ReadBlockInputs(*file, config, backward);
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

std::string RoundedDigest(const h3::HostTensor& tensor) {
  const auto* values = static_cast<const float*>(tensor.tensor.data);
  std::vector<bfloat16> rounded(tensor.tensor.NumElements());
  RoundToBf16(absl::MakeConstSpan(values, rounded.size()), rounded.data());
  return Sha256Hex(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(rounded.data()),
                                       rounded.size() * sizeof(bfloat16)));
}

template <typename T>
std::string Digest(const std::vector<T>& values) {
  return Sha256Hex(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                                       values.size() * sizeof(T)));
}

template <typename T>
Tensor VectorView(const std::vector<T>& values, DType dtype, int64_t width) {
  return Tensor::Dense(const_cast<T*>(values.data()), dtype, 1,
                       static_cast<int64_t>(values.size()) / width, width);
}

// `first` and, if there is a second item, both as one batch.
absl::Status PutBatch(absl::string_view name, const h3::HostTensor& first,
                      const h3::HostTensor* second, drift::TensorStore* store) {
  if (second == nullptr) return store->PutHost(name, first.tensor);
  Tensor both = first.tensor;
  std::vector<uint8_t> bytes(first.Bytes().begin(), first.Bytes().end());
  bytes.insert(bytes.end(), second->Bytes().begin(), second->Bytes().end());
  both.batch = 2;
  both.data = bytes.data();
  return store->PutHost(name, both);
}

}  // namespace

absl::StatusOr<OpenCaptures> OpenCaptureFiles(const CaptureFiles& files) {
  OpenCaptures captures;
  PLUMBLINE_RETURN_IF_ERROR(OpenInto("inputs", files.inputs, &captures.inputs));
  PLUMBLINE_RETURN_IF_ERROR(OpenInto("golden", files.golden, &captures.golden));
  PLUMBLINE_RETURN_IF_ERROR(OpenInto("providers", files.provider, &captures.provider));
  PLUMBLINE_RETURN_IF_ERROR(OpenInto("candidate", files.candidate, &captures.candidate));
  return captures;
}

h3::RowCounts ReplayInputs::Rows() const {
  h3::RowCounts rows;
  rows.packed = values.layout.Rows();
  rows.text = values.layout.TextRows();
  rows.video = values.layout.VideoRows();
  rows.audio = values.layout.AudioRows();
  rows.timesteps = values.layout.Timesteps();
  return rows;
}

absl::StatusOr<ReplayInputs> MakeReplayInputs(const v1::BlockReplaySpec& spec,
                                              const OpenCaptures& captures,
                                              const h3::TransformerConfig& config) {
  ReplayInputs inputs;
  PLUMBLINE_ASSIGN_OR_RETURN(const bool captured,
                             ReadCapturedInputs(captures, config, spec.backward(), &inputs.values));
  if (captured && spec.layouts().empty()) {
    inputs.label = "captured inputs";
    return inputs;
  }
  v1::Layout wanted;
  wanted.set_name(kDefaultLayout);
  if (!spec.layouts().empty()) wanted = spec.layouts(0);
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::LayoutSpec shape, LayoutFromProto(wanted, kLayoutsField));
  PLUMBLINE_ASSIGN_OR_RETURN(h3::PackedLayout layout, Build(shape));
  inputs.label = LayoutLabel(shape);
  inputs.layout = LayoutToProto(shape);
  if (!captured) {
    PLUMBLINE_ASSIGN_OR_RETURN(inputs.values,
                               h3::StandInBlockInputs(config, layout, h3::kStandInSeed));
    return inputs;
  }
  const h3::PackedLayout& found = inputs.values.layout;
  if (found.position_ids != layout.position_ids || found.token_tags != layout.token_tags ||
      found.video_indices != layout.video_indices || found.audio_indices != layout.audio_indices ||
      found.text_indices != layout.text_indices) {
    return FieldError(kLayoutsField,
                      absl::StrCat("the captured inputs have another layout (", found.Rows(),
                                   " rows) than ", inputs.label, " (", layout.Rows(), " rows)"),
                      "the layout of the captured inputs, or none");
  }
  // The same rows, and now their places are known.
  inputs.values.layout.spec = shape;
  inputs.values.layout.keyframe_rows = layout.keyframe_rows;
  return inputs;
}

std::map<std::string, std::string> InputDigests(const ReplayInputs& inputs, bool backward) {
  const h3::PackedLayout& layout = inputs.values.layout;
  std::map<std::string, std::string> digests = {
      {"block.input", RoundedDigest(inputs.values.input)},
      {"block.temb", Sha256Hex(inputs.values.temb.Bytes())},
      {"position_ids", Digest(layout.position_ids)},
      {"token_tags", Digest(layout.token_tags)},
      {"video_indices", Digest(layout.video_indices)},
      {"audio_indices", Digest(layout.audio_indices)},
      {"text_indices", Digest(layout.text_indices)},
      {"timestep", Digest(layout.timestep)},
      {"timestep_indices", Digest(layout.timestep_indices)}};
  if (backward) digests[kUpstream] = RoundedDigest(inputs.values.upstream);
  return digests;
}

absl::StatusOr<DeviceInputs> DeviceInputs::Make(Device& device, const h3::BlockInputs& inputs,
                                                const h3::BlockInputs* other, bool backward) {
  DeviceInputs result(&device);
  drift::TensorStore& store = result.store_;
  PLUMBLINE_RETURN_IF_ERROR(
      PutBatch("block.input", inputs.input, other == nullptr ? nullptr : &other->input, &store));
  PLUMBLINE_RETURN_IF_ERROR(store.PutHost("block.temb", inputs.temb.tensor));
  const h3::PackedLayout& layout = inputs.layout;
  PLUMBLINE_RETURN_IF_ERROR(
      store.PutHost("position_ids", VectorView(layout.position_ids, DType::kF64, 3)));
  PLUMBLINE_RETURN_IF_ERROR(
      store.PutHost("adaln_indices", VectorView(layout.adaln_indices, DType::kI64, 1)));
  if (backward) {
    PLUMBLINE_RETURN_IF_ERROR(PutBatch(kUpstream, inputs.upstream,
                                       other == nullptr ? nullptr : &other->upstream, &store));
  }
  return result;
}

absl::Status DeviceInputs::Set(h3::Executor& executor, absl::string_view output,
                               const drift::RowSelection* selection) const {
  const auto rows = [&](const Tensor& tensor) {
    return selection == nullptr ? tensor : selection->Of(tensor);
  };
  for (absl::string_view name : {"block.input", "position_ids", "adaln_indices"}) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store_.Find(name));
    PLUMBLINE_RETURN_IF_ERROR(executor.SetInput(name, rows(tensor)));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor temb, store_.Find("block.temb"));
  PLUMBLINE_RETURN_IF_ERROR(executor.SetInput("block.temb", temb));
  if (output.empty()) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor upstream, store_.Find(kUpstream));
  return executor.SetUpstream(output, rows(upstream));
}

}  // namespace plumbline::jobs
