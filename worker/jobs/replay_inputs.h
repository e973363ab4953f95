#ifndef PLUMBLINE_WORKER_JOBS_REPLAY_INPUTS_H_
#define PLUMBLINE_WORKER_JOBS_REPLAY_INPUTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/safetensors.h"
#include "kernels/device.h"
#include "proto/plumbline/v1/block_replay.pb.h"
#include "worker/drift/row_selection.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/config.h"
#include "worker/h3/executor.h"
#include "worker/h3/model_inputs.h"
#include "worker/jobs/block_replay.h"

namespace plumbline::jobs {

// The captures of a request, opened; null: not given.
struct OpenCaptures {
  std::unique_ptr<SafetensorsFile> inputs;
  std::unique_ptr<SafetensorsFile> golden;
  std::unique_ptr<SafetensorsFile> provider;
  std::unique_ptr<SafetensorsFile> candidate;
};

// INVALID_ARGUMENT begins with the capture's field.
absl::StatusOr<OpenCaptures> OpenCaptureFiles(const CaptureFiles& files);

// What a replay runs on.
struct ReplayInputs {
  h3::BlockInputs values;
  // What people call the layout.
  std::string label;
  v1::Layout layout;  // sizes unset where captured inputs came without a layout

  h3::RowCounts Rows() const;
};

// The inputs that a capture holds, or the stand-ins of the layout asked for (`tiny` if none is).
// INVALID_ARGUMENT: inputs that two captures hold differently, or that have another layout than
// the one asked for.
absl::StatusOr<ReplayInputs> MakeReplayInputs(const v1::BlockReplaySpec& spec,
                                              const OpenCaptures& captures,
                                              const h3::TransformerConfig& config);

// Hex SHA-256 by name of the inputs, each in the type that a block's graph gives it.
std::map<std::string, std::string> InputDigests(const ReplayInputs& inputs, bool backward);

// The inputs on a device, for as many executions as like. Not thread-safe.
class DeviceInputs {
 public:
  // `other`, if not null, becomes a second batch item: block.input and block.upstream of the same
  // shape. The host's values are not needed afterwards.
  static absl::StatusOr<DeviceInputs> Make(Device& device, const h3::BlockInputs& inputs,
                                           const h3::BlockInputs* other, bool backward);

  // Sets every input of an executor over a block's graph, and, unless `output` is empty, the
  // gradient reaching that output; with `selection`, of those packed rows only.
  absl::Status Set(h3::Executor& executor, absl::string_view output,
                   const drift::RowSelection* selection) const;

 private:
  explicit DeviceInputs(Device* device) : store_(device) {}

  drift::TensorStore store_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_REPLAY_INPUTS_H_
