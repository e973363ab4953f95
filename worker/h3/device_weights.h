#ifndef PLUMBLINE_WORKER_H3_DEVICE_WEIGHTS_H_
#define PLUMBLINE_WORKER_H3_DEVICE_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "worker/h3/weight_source.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

// The parameters of one segment at a time on a device. Executors that advance together share one,
// so that every parameter is read once. Not thread-safe.
class DeviceWeights {
 public:
  // Both must outlive this object.
  DeviceWeights(const WeightSource* source, Device* device) : source_(source), device_(device) {}

  // Type and shape of a parameter, without data: (rows, width), a vector being one row.
  absl::StatusOr<Tensor> Shape(absl::string_view name) const;

  // Loads what the nodes of a segment read and drops the rest; nothing when it is loaded already.
  absl::Status Load(const Graph& graph, int segment);

  // A loaded parameter, valid until the next Load() of another segment.
  absl::StatusOr<Tensor> Find(absl::string_view name) const;

 private:
  struct Loaded {
    WeightView host;  // keeps the bytes where the device is the CPU
    DeviceBuffer buffer;
    Tensor tensor;
  };

  const WeightSource* const source_;
  Device* const device_;
  // What is loaded; null when nothing is.
  const Graph* graph_ = nullptr;
  int segment_ = 0;
  absl::flat_hash_map<std::string, Loaded> loaded_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DEVICE_WEIGHTS_H_
