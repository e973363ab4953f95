#include "worker/jobs/replay_inputs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

constexpr char kLayoutsField[] = "block_replay.layouts";
constexpr char kUpstream[] = "block.upstream";

bool HoldsInputs(const SafetensorsFile& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (h3::IsBlockInputName(tensor.name)) return true;
  }
  return false;
}

bool SameBytes(const h3::HostTensor& a, const h3::HostTensor& b) { return a.Bytes() == b.Bytes(); }

// The name of an input that differs, or "".
std::string DifferingInput(const h3::BlockInputs& a, const h3::BlockInputs& b) {
  if (!SameLayout(a.layout, b.layout)) return "the packed layout";
  if (!SameBytes(a.input, b.input)) return "block.input";
  if (!SameBytes(a.temb, b.temb)) return "block.temb";
  if (!SameBytes(a.upstream, b.upstream)) return kUpstream;
  return "";
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
  PLUMBLINE_ASSIGN_OR_RETURN(captures.inputs,
                             OpenCapture("block_replay.captures.inputs", files.inputs));
  PLUMBLINE_ASSIGN_OR_RETURN(captures.golden,
                             OpenCapture("block_replay.captures.golden", files.golden));
  PLUMBLINE_ASSIGN_OR_RETURN(captures.provider,
                             OpenCapture("block_replay.captures.providers", files.provider));
  PLUMBLINE_ASSIGN_OR_RETURN(captures.candidate,
                             OpenCapture("block_replay.captures.candidate", files.candidate));
  return captures;
}

h3::RowCounts ReplayInputs::Rows() const { return RowsOf(values.layout); }

absl::StatusOr<ReplayInputs> MakeReplayInputs(const v1::BlockReplaySpec& spec,
                                              const OpenCaptures& captures,
                                              const h3::TransformerConfig& config) {
  ReplayInputs inputs;
  PLUMBLINE_ASSIGN_OR_RETURN(const bool captured,
                             ReadCapturedInputs(captures, config, spec.backward(), &inputs.values));
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
                             h3::StandInBlockInputs(config, chosen.packed, h3::kStandInSeed));
  return inputs;
}

std::map<std::string, std::string> InputDigests(const ReplayInputs& inputs, bool backward) {
  std::map<std::string, std::string> digests = LayoutDigests(inputs.values.layout);
  digests["block.input"] = RoundedDigest(inputs.values.input);
  digests["block.temb"] = Sha256Hex(inputs.values.temb.Bytes());
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
