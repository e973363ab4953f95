#include "worker/drift/capture.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/safetensors_writer.h"
#include "common/status.h"
#include "worker/drift/capture_names.h"
#include "worker/drift/compare.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/model_inputs.h"

namespace plumbline::drift {
namespace {

absl::Status CheckNames(absl::string_view field, const SafetensorsFile& file,
                        const BlockEntries& entries, const BlockEntries& entries_with_gradients) {
  std::vector<CapturedTensor> required;
  for (const BlockEntry& entry : entries.all()) {
    required.push_back({entry.capture_name, entry.shape});
  }
  absl::flat_hash_set<absl::string_view> known;
  for (const BlockEntry& entry : entries_with_gradients.all()) known.insert(entry.capture_name);
  return CheckCaptureNames(field, file, "a block", required, [&](absl::string_view name) {
    return known.contains(name) || h3::IsBlockInputName(name);
  });
}

}  // namespace

absl::Status LoadCapture(absl::string_view field, const SafetensorsFile& file,
                         const BlockEntries& entries, const BlockEntries& entries_with_gradients,
                         TensorStore* store) {
  PLUMBLINE_RETURN_IF_ERROR(CheckNames(field, file, entries, entries_with_gradients));
  for (const BlockEntry& entry : entries.all()) {
    const TensorInfo& tensor = *file.Find(entry.capture_name);
    const Tensor host =
        AsComparedTensor(file.Bytes(tensor).data(), tensor.dtype, tensor.shape).tensor;
    PLUMBLINE_RETURN_IF_ERROR(store->PutHost(entry.tensor_name, host));
  }
  return absl::OkStatus();
}

absl::Status WriteCapture(const std::string& path, const BlockEntries& entries,
                          const TensorStore& store, Device& device) {
  std::vector<TensorSpec> specs;
  for (const BlockEntry& entry : entries.all()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store.Find(entry.tensor_name));
    specs.push_back({entry.capture_name, tensor.dtype, entry.shape});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs));
  for (const BlockEntry& entry : entries.all()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store.Find(entry.tensor_name));
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, ToHost(device, tensor));
    PLUMBLINE_RETURN_IF_ERROR(writer.Write(entry.capture_name, host.Bytes()));
  }
  return writer.Finish();
}

}  // namespace plumbline::drift
