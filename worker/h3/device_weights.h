#ifndef PLUMBLINE_WORKER_H3_DEVICE_WEIGHTS_H_
#define PLUMBLINE_WORKER_H3_DEVICE_WEIGHTS_H_

#include <cstdint>
#include <future>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "worker/h3/graph.h"
#include "worker/h3/parameter_source.h"

namespace plumbline::h3 {

// The parameters of one segment at a time on a device, and those of the next one if somebody says
// which it is; or, for a model that runs many times and fits, of every segment that was loaded.
// Executors that advance together share one object, so that every parameter is read once for all of
// them. One thread at a time may call.
class DeviceWeights {
 public:
  // Both must outlive this object.
  DeviceWeights(const ParameterSource* source, Device* device) : source_(source), device_(device) {}

  // From now on no segment is dropped. Only for loads of one graph.
  void KeepAll() { keep_all_ = true; }

  // Type and shape of a parameter, without data: (rows, width), a vector being one row.
  absl::StatusOr<Tensor> Shape(absl::string_view name) const;

  // The most that two neighbouring segments take, the first following the last: what is on a device
  // while one is in use and the next is being loaded.
  absl::StatusOr<int64_t> TwoSegmentBytes(const Graph& graph) const;

  // Loads what the nodes of a segment read and drops the rest; nothing when it is loaded already.
  // Waits for Prefetch() if it was given the same segment, and otherwise drops what that loads.
  absl::Status Load(const Graph& graph, int segment);

  // Begins to load another segment on a thread of its own, beside the one in use. An error comes
  // out of its Load(). `graph` must outlive the loading.
  void Prefetch(const Graph& graph, int segment);

  // A loaded parameter, valid until the next Load() of another segment.
  absl::StatusOr<Tensor> Find(absl::string_view name) const;

  // Whether another thread may be loading.
  bool IsPrefetching() const { return next_.valid(); }

  // Bytes of all parameters that Load() made available since this object was made; one that was
  // dropped and loaded again counts again.
  int64_t loaded_bytes() const { return loaded_bytes_; }

 private:
  struct Loaded {
    WeightView host;  // keeps the bytes where the device is the CPU
    DeviceBuffer buffer;
    Tensor tensor;
  };

  struct Segment {
    const Graph* graph = nullptr;  // null when nothing is loaded
    int index = 0;
    int64_t bytes = 0;
    absl::flat_hash_map<std::string, Loaded> parameters;

    bool Is(const Graph& other, int segment) const { return graph == &other && index == segment; }
  };

  static absl::Status ReadParameter(const ParameterSource& source, Device& device,
                                    const std::string& name, Loaded* loaded);
  static absl::StatusOr<Segment> Read(const ParameterSource& source, Device& device,
                                      const Graph& graph, int segment);

  const ParameterSource* const source_;
  Device* const device_;
  Segment loaded_;
  bool keep_all_ = false;
  absl::flat_hash_map<int, Segment> kept_;  // By index, but for `loaded_`.
  // Without parameters: what `next_` is or will be.
  Segment expected_;
  std::future<absl::StatusOr<Segment>> next_;
  int64_t loaded_bytes_ = 0;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DEVICE_WEIGHTS_H_
