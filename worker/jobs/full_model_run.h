#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_RUN_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/drift/compare.h"
#include "worker/h3/device_weights.h"
#include "worker/jobs/full_model_setup.h"
#include "worker/jobs/full_model_sides.h"
#include "worker/jobs/job.h"
#include "worker/jobs/lockstep.h"

namespace plumbline::jobs {

// One run of a setup, from the first weight to the verdict. Used once, by one thread.
class FullModelRun {
 public:
  explicit FullModelRun(FullModelSetup& setup);

  absl::StatusOr<JobResult> Run();

 private:
  // A composition's figures by inventory index; an unset comparison: it has no such tensor.
  struct Figures {
    std::vector<std::optional<v1::TensorComparison>> error;  // against golden
    std::vector<std::optional<v1::TensorComparison>> drift;  // against provider/default
  };

  // Where the tensors of a side are written, besides being compared.
  struct OutputTensors {
    TensorFile tensors;
    OutputFile file;
  };

  absl::Status PrepareSides();
  // Adds a side whose tensors go to `function`; its executor, or null for a capture.
  absl::StatusOr<const h3::Executor*> AddSide(const FullModelSide& side, TensorFunction function);
  // As AddSide, and writes the side's kept tensors and, if `save`, all of them to files.
  absl::StatusOr<const h3::Executor*> AddKeptSide(const FullModelSide& side, bool save,
                                                  TensorFunction function);
  absl::Status AddOutput(const std::string& file_name, v1::ArtifactRole role,
                         const std::vector<bool>& chosen, const h3::Executor& executor,
                         std::vector<OutputTensors*>* outputs);
  absl::Status Tick(absl::string_view activity);

  drift::RowNamer NamerOf(size_t index) const;
  // A tensor of the device with its digest; of a gradient on a GPU, which never leaves it, nobody
  // can tell that.
  absl::StatusOr<drift::ComparedTensor> Described(size_t index, const Tensor& tensor,
                                                  const std::vector<int64_t>& shape) const;
  absl::StatusOr<v1::TensorComparison> Compare(size_t index, const ReferenceTensors& reference,
                                               absl::string_view name,
                                               const drift::ComparedTensor& x);
  absl::Status OnGolden(size_t index, const Tensor& tensor, const std::vector<int64_t>& shape);
  absl::Status OnProvider(int provider, size_t index, const Tensor& tensor,
                          const std::vector<int64_t>& shape);
  absl::Status OnCandidate(size_t index, const Tensor& tensor, const std::vector<int64_t>& shape);
  absl::Status OnAblated(int ablated, size_t index, const Tensor& tensor,
                         const std::vector<int64_t>& shape);
  absl::StatusOr<bool> HasBytesOfProvider(size_t index, const Tensor& tensor);
  void SendCandidate(size_t index);

  absl::Status DescribeRun();
  absl::Status MakeRule();
  absl::Status StoreRule();
  void ListProviders();
  absl::StatusOr<v1::Verdict> Judge();
  absl::Status FillAblation();
  absl::StatusOr<JobResult> Finish();

  FullModelSetup& setup_;
  Device& device_;
  const JobContext& context_;
  const InventoryIndex inventory_;
  // For comparisons where the device has none.
  ThreadPool own_threads_{drift::ComparisonThreads(device_)};
  ThreadPool& threads_;

  h3::DeviceWeights weights_;
  std::unique_ptr<h3::DeviceWeights> faulty_weights_;
  std::unique_ptr<DeviceModelInputs> inputs_;
  std::unique_ptr<DeviceModelInputs> faulty_inputs_;

  std::vector<std::unique_ptr<InventorySink>> sinks_;
  std::vector<std::unique_ptr<LockstepSide>> sides_;
  const h3::Executor* candidate_executor_ = nullptr;
  std::vector<const h3::Executor*> ablated_executors_;
  std::vector<std::unique_ptr<OutputTensors>> outputs_;

  ReferenceTensors golden_;
  ReferenceTensors provider_;
  // Held back until the rule is durable.
  Figures candidate_;
  std::vector<Figures> ablated_;
  std::vector<std::string> differs_from_provider_;  // of the ablation that replaces all

  v1::Rule rule_;  // that judges
  v1::FullModelReport report_;
  JobResult result_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_RUN_H_
