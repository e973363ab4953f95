#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_TRANSFORMER_CALLS_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_TRANSFORMER_CALLS_H_

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/tensor.h"
#include "proto/plumbline/v1/identity.pb.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/composition.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/executor.h"
#include "worker/h3/graph.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/generation/step_inputs.h"
#include "worker/jobs/job_context.h"

namespace plumbline::jobs {

// What one evaluation returns: of all video rows, keyframes' included, and of all audio rows.
struct Velocities {
  std::vector<float> video;
  std::vector<float> audio;
};

// The whole transformer under one composition, forward, as often as wanted. The weights stay on a
// GPU if they fit beside what an evaluation takes, and with a CPU if they take no more than half of
// the memory; else each evaluation loads them segment by segment. One thread.
class TransformerCalls {
 public:
  // All must outlive it. `ignores_text`: a control; the model is given zeros for the prompt's rows.
  // `rows` is of an evaluation. RESOURCE_EXHAUSTED, with the memory that is needed, where the
  // device has less.
  static absl::StatusOr<std::unique_ptr<TransformerCalls>> Make(
      const h3::Graph& graph, const h3::ResolvedComposition& composition,
      const h3::WeightSource& weights, const JobContext& context, bool ignores_text,
      const h3::RowCounts& rows);
  ~TransformerCalls();  // Waits for what is being loaded.
  TransformerCalls(const TransformerCalls&) = delete;
  TransformerCalls& operator=(const TransformerCalls&) = delete;

  // Begins to load weights on a thread of its own; the first Evaluate() waits for it. Once at most.
  void StartLoading();

  // RESOURCE_EXHAUSTED where the device's memory is too small; whatever check_cancelled() returns,
  // which is asked before every segment.
  absl::StatusOr<Velocities> Evaluate(const StepInputs& inputs);

  // What the last evaluation ran.
  v1::ImplementationTrace Trace() const;

 private:
  // Copies the outputs to the host.
  class Outputs : public h3::TapSink {
   public:
    explicit Outputs(Device* device) : device_(*device) {}

    bool Wants(absl::string_view name, h3::TapKind kind) const override;
    absl::Status OnTensor(const h3::Tap& tap) override;
    Velocities Take() { return std::move(velocities_); }

   private:
    Device& device_;
    Velocities velocities_;
  };

  TransformerCalls(const h3::Graph& graph, const h3::ResolvedComposition& composition,
                   const h3::WeightSource& weights, const JobContext& context, bool ignores_text);

  // Decides whether the weights stay.
  absl::Status PlanMemory(const h3::RowCounts& rows);
  absl::Status LoadAll();
  absl::Status SetInputs(const StepInputs& inputs);
  // An executor is made for a number of distinct timesteps, which differs between few steps.
  absl::Status PrepareExecutor(const StepInputs& inputs);

  const h3::Graph& graph_;
  const h3::ResolvedComposition& composition_;
  const JobContext& context_;
  const bool ignores_text_;

  h3::DeviceWeights weights_;
  const int64_t weight_bytes_;
  bool keeps_weights_ = false;
  std::atomic<bool> stop_loading_ = false;
  std::future<absl::Status> loading_;  // Alone with weights_ while it is valid.

  drift::TensorStore inputs_;
  Outputs outputs_;
  int64_t timesteps_ = 0;
  std::unique_ptr<h3::Executor> executor_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_TRANSFORMER_CALLS_H_
