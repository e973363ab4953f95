#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_SIDES_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_SIDES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "kernels/device.h"
#include "worker/drift/compare.h"
#include "worker/h3/executor.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/inventory.h"
#include "worker/jobs/lockstep.h"

// The sides of a full model's lockstep: what they hand out goes, by its index in the inventory, to
// a function, whether an executor computed it or a capture holds it.

namespace plumbline::jobs {

// The inventory of a run, found by name and by segment. Immutable.
class InventoryIndex {
 public:
  InventoryIndex(const h3::Graph& graph, const std::vector<h3::InventoryTensor>& inventory);

  const h3::InventoryTensor& operator[](size_t index) const { return inventory_[index]; }
  size_t size() const { return inventory_.size(); }

  // The index of what an executor hands out under this name, or -1.
  int Find(absl::string_view tap, h3::TapKind kind) const;

  // What the rows of a tensor are; kTimesteps also for parameters.
  h3::RowSpace RowsOf(size_t index) const { return rows_[index]; }

  // Indices of what a segment hands out.
  const std::vector<size_t>& Forward(int segment) const { return forward_[segment]; }
  const std::vector<size_t>& Backward(int segment) const { return backward_[segment]; }

 private:
  const std::vector<h3::InventoryTensor>& inventory_;
  absl::flat_hash_map<std::string, int> by_tap_;
  std::vector<h3::RowSpace> rows_;
  std::vector<std::vector<size_t>> forward_, backward_;
};

// One tensor of a side in the device's memory, valid during the call. An error ends the run.
using TensorFunction = std::function<absl::Status(size_t index, const Tensor& tensor,
                                                  const std::vector<int64_t>& shape)>;

// Hands the tensors of an execution on.
class InventorySink : public h3::TapSink {
 public:
  InventorySink(const InventoryIndex& inventory, TensorFunction function)
      : inventory_(inventory), function_(std::move(function)) {}

  bool Wants(absl::string_view name, h3::TapKind kind) const override {
    return inventory_.Find(name, kind) >= 0;
  }
  absl::Status OnTensor(const h3::Tap& tap) override;

 private:
  const InventoryIndex& inventory_;
  const TensorFunction function_;
};

// Hands the tensors of a capture on, when an execution would have computed them; those it lacks
// are passed over.
class CaptureSide : public LockstepSide {
 public:
  // All but the function must outlive it.
  CaptureSide(const InventoryIndex& inventory, const SafetensorsFile& file, Device* device,
              TensorFunction function)
      : inventory_(inventory), file_(file), device_(*device), function_(std::move(function)) {}

  absl::Status Forward(int segment) override { return HandOn(inventory_.Forward(segment)); }
  absl::Status Backward(int segment) override { return HandOn(inventory_.Backward(segment)); }

 private:
  absl::Status HandOn(const std::vector<size_t>& indices);

  const InventoryIndex& inventory_;
  const SafetensorsFile& file_;
  Device& device_;
  const TensorFunction function_;
};

// Copies of a reference's tensors of one segment, in the device's memory, for those that come after
// it. Not thread-safe; the device must outlive it.
class ReferenceTensors {
 public:
  ReferenceTensors(std::string name, Device* device) : name_(std::move(name)), device_(*device) {}

  const std::string& name() const { return name_; }
  // `sha256` as in ComparedTensor.
  absl::Status Put(size_t index, const Tensor& tensor, const std::vector<int64_t>& shape,
                   std::string sha256);
  bool Contains(size_t index) const { return tensors_.count(index) > 0; }
  // It must be there.
  const drift::ComparedTensor& Get(size_t index) const { return tensors_.at(index).compared; }
  void Clear() { tensors_.clear(); }

 private:
  struct Stored {
    DeviceBuffer memory;
    drift::ComparedTensor compared;
  };

  const std::string name_;
  Device& device_;
  std::map<size_t, Stored> tensors_;
};

// A file that chosen tensors of an execution are written to as they appear, under their names in
// the inventory.
class TensorFile {
 public:
  // `chosen` by inventory index. The file appears in Finish().
  static absl::StatusOr<TensorFile> Create(const std::string& path, const InventoryIndex& inventory,
                                           const std::vector<bool>& chosen,
                                           const h3::Executor& executor, Device* device);

  // Writes the tensor if it was chosen.
  absl::Status Write(size_t index, const Tensor& tensor);
  absl::Status Finish() { return writer_.Finish(); }

 private:
  TensorFile(const InventoryIndex& inventory, std::vector<bool> chosen, SafetensorsWriter writer,
             Device* device)
      : inventory_(inventory),
        device_(device),
        chosen_(std::move(chosen)),
        writer_(std::move(writer)) {}

  const InventoryIndex& inventory_;
  Device* device_;
  const std::vector<bool> chosen_;
  SafetensorsWriter writer_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_SIDES_H_
