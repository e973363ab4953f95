#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_INPUTS_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_INPUTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/safetensors.h"
#include "kernels/device.h"
#include "proto/plumbline/v1/full_model.pb.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/config.h"
#include "worker/h3/executor.h"
#include "worker/h3/model_inputs.h"

namespace plumbline::jobs {

// Where the files of a specification lie on this machine; empty: not given.
struct FullModelFiles {
  std::string inputs;
  std::string golden;
  std::map<std::string, std::string> providers;  // as CaptureSet.providers
  std::string candidate;
  std::string rule;
};

// The captures of a request, opened; null: not given.
struct FullModelCaptures {
  std::unique_ptr<SafetensorsFile> inputs;
  std::unique_ptr<SafetensorsFile> golden;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> providers;
  std::unique_ptr<SafetensorsFile> candidate;
};

// INVALID_ARGUMENT begins with the capture's field.
absl::StatusOr<FullModelCaptures> OpenFullModelCaptures(const FullModelFiles& files);

// What the model is run on.
struct FullModelRunInputs {
  h3::FullModelInputs values;
  // What people call the layout.
  std::string label;
  v1::Layout layout;  // sizes unset where captured inputs came without a layout

  // Hex digest of the inputs, by name and bytes: that of the lines "NAME SHA256", sorted, each
  // ended.
  std::string Sha256() const;
};

// The inputs that a capture holds, or the stand-ins of the layout asked for (`tiny` if none is).
// INVALID_ARGUMENT: inputs that two captures hold differently, or that have another layout than the
// one asked for.
absl::StatusOr<FullModelRunInputs> MakeFullModelInputs(const v1::FullModelSpec& spec,
                                                       const FullModelCaptures& captures,
                                                       const h3::TransformerConfig& config);

// The inputs on a device, for as many executions as like. Not thread-safe.
class DeviceModelInputs {
 public:
  // The host's values are not needed afterwards.
  static absl::StatusOr<DeviceModelInputs> Make(Device& device, const h3::FullModelInputs& inputs);

  // Sets every input of an executor over the transformer's graph and both upstream gradients.
  absl::Status Set(h3::Executor& executor) const;

 private:
  explicit DeviceModelInputs(Device* device) : store_(device) {}

  drift::TensorStore store_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_INPUTS_H_
