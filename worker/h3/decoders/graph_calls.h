#ifndef PLUMBLINE_WORKER_H3_DECODERS_GRAPH_CALLS_H_
#define PLUMBLINE_WORKER_H3_DECODERS_GRAPH_CALLS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "worker/h3/composition.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/executor.h"
#include "worker/h3/graph.h"
#include "worker/h3/parameter_source.h"

namespace plumbline::h3 {

// A graph with one float32 output, run forward as often as wanted. The weights stay on the device
// if they take no more than half of its memory. One thread.
class GraphCalls {
 public:
  // All must outlive it. `check_cancelled` is asked before every segment; an error ends the call.
  GraphCalls(const Graph& graph, const ResolvedComposition& composition,
             const ParameterSource& weights, const Registry& registry, Device& device,
             std::function<absl::Status()> check_cancelled);

  // Makes ready for inputs of these sizes; nothing where the sizes are those of before.
  // RESOURCE_EXHAUSTED where the device's memory is too small.
  absl::Status Prepare(const RowCounts& rows, int64_t batch);
  // From dense values in the host's memory.
  absl::Status SetInput(absl::string_view name, const Tensor& host);
  // The output (batch, rows, width), row-major.
  absl::StatusOr<std::vector<float>> Run();

  // Of the last run.
  const std::vector<NodeTrace>& trace() const { return executor_->trace(); }

 private:
  class Output : public TapSink {
   public:
    Output(const Graph& graph, Device* device)
        : name_(graph.values()[graph.outputs().front()].name), device_(*device) {}
    bool Wants(absl::string_view name, TapKind kind) const override {
      return kind == TapKind::kForward && name == name_;
    }
    absl::Status OnTensor(const Tap& tap) override;
    std::vector<float> Take() { return std::move(values_); }

   private:
    const std::string name_;
    Device& device_;
    std::vector<float> values_;
  };

  const Graph& graph_;
  const ResolvedComposition& composition_;
  const Registry& registry_;
  Device& device_;
  const std::function<absl::Status()> check_cancelled_;
  const bool keeps_weights_;
  DeviceWeights weights_;
  Output output_;
  RowCounts rows_;
  int64_t batch_ = 0;
  std::unique_ptr<Executor> executor_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_GRAPH_CALLS_H_
