#include "worker/jobs/full_model_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "worker/drift/equality.h"
#include "worker/drift/row_names.h"
#include "worker/drift/tensor_store.h"

namespace plumbline::jobs {
namespace {

constexpr char kSafetensorsType[] = "application/octet-stream";
constexpr absl::string_view kAllGroup = "all";

}  // namespace

FullModelRun::FullModelRun(FullModelSetup& setup)
    : setup_(setup),
      device_(*setup.environment.context.device),
      context_(setup.environment.context),
      inventory_(setup.graph, setup.inventory),
      threads_(device_.Context().threads != nullptr ? *device_.Context().threads : own_threads_),
      weights_(&setup.weights, &device_),
      golden_(setup.golden.name, &device_),
      provider_("provider/default", &device_) {
  candidate_.error.resize(inventory_.size());
  candidate_.drift.resize(inventory_.size());
  ablated_.resize(setup.ablation.size());
  for (size_t i = 0; i < inventory_.size(); ++i) {
    v1::FullModelTensor& tensor = *report_.add_tensors();
    tensor.set_name(inventory_[i].name);
    tensor.set_order(static_cast<int32_t>(i));
    tensor.mutable_shape()->Add(inventory_[i].shape.begin(), inventory_[i].shape.end());
    for (size_t provider = 0; provider < setup.providers.size(); ++provider) {
      tensor.add_provider_errors();
    }
  }
}

absl::StatusOr<JobResult> FullModelRun::Run() {
  const absl::Time start = context_.clock->Now();
  device_.ResetHighWater();
  PLUMBLINE_RETURN_IF_ERROR(PrepareSides());
  total_ = static_cast<int64_t>(sides_.size() * inventory_.size());
  std::vector<h3::DeviceWeights*> weights = {&weights_};
  if (faulty_weights_ != nullptr) weights.push_back(faulty_weights_.get());
  std::vector<LockstepSide*> sides;
  for (const auto& side : sides_) sides.push_back(side.get());
  PLUMBLINE_RETURN_IF_ERROR(RunLockstep(setup_.graph, weights, sides, [this] {
    golden_.Clear();
    provider_.Clear();
    return context_.check_cancelled();
  }));
  report_.set_wall_seconds(absl::ToDoubleSeconds(context_.clock->Now() - start));
  return Finish();
}

// In the order in which they are needed: golden, the providers, then who is compared with both.
absl::Status FullModelRun::PrepareSides() {
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceModelInputs inputs,
                             DeviceModelInputs::Make(device_, setup_.inputs.values));
  inputs_ = std::make_unique<DeviceModelInputs>(std::move(inputs));
  if (setup_.fault.has_value() && setup_.fault->weights != nullptr) {
    faulty_weights_ = std::make_unique<h3::DeviceWeights>(setup_.fault->weights.get(), &device_);
  }
  if (setup_.fault.has_value() && setup_.fault->change_layout != nullptr) {
    h3::FullModelInputs changed = setup_.inputs.values;
    setup_.fault->change_layout(&changed.layout);
    PLUMBLINE_ASSIGN_OR_RETURN(DeviceModelInputs faulty, DeviceModelInputs::Make(device_, changed));
    faulty_inputs_ = std::make_unique<DeviceModelInputs>(std::move(faulty));
  }

  PLUMBLINE_RETURN_IF_ERROR(
      AddKeptSide(setup_.golden, /*save=*/false,
                  [this](size_t index, const Tensor& tensor, const std::vector<int64_t>& shape) {
                    return OnGolden(index, tensor, shape);
                  })
          .status());
  for (size_t i = 0; i < setup_.providers.size(); ++i) {
    PLUMBLINE_RETURN_IF_ERROR(
        AddKeptSide(
            setup_.providers[i], /*save=*/false,
            [this, i](size_t index, const Tensor& tensor, const std::vector<int64_t>& shape) {
              return OnProvider(static_cast<int>(i), index, tensor, shape);
            })
            .status());
  }
  if (setup_.candidate.has_value()) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        candidate_executor_,
        AddKeptSide(*setup_.candidate, setup_.save_tensors,
                    [this](size_t index, const Tensor& tensor, const std::vector<int64_t>& shape) {
                      return OnCandidate(index, tensor, shape);
                    }));
  }
  for (size_t i = 0; i < setup_.ablation.size(); ++i) {
    ablated_executors_.push_back(nullptr);
    if (setup_.ablation[i].empty) continue;
    ablated_[i].error.resize(inventory_.size());
    PLUMBLINE_ASSIGN_OR_RETURN(
        ablated_executors_[i],
        AddSide(setup_.ablation[i].side,
                [this, i](size_t index, const Tensor& tensor, const std::vector<int64_t>& shape) {
                  return OnAblated(static_cast<int>(i), index, tensor, shape);
                }));
  }
  return absl::OkStatus();
}

absl::StatusOr<const h3::Executor*> FullModelRun::AddSide(const FullModelSide& side,
                                                          TensorFunction function) {
  if (side.capture != nullptr) {
    sides_.push_back(
        std::make_unique<CaptureSide>(inventory_, *side.capture, &device_, std::move(function)));
    return nullptr;
  }
  sinks_.push_back(std::make_unique<InventorySink>(inventory_, std::move(function)));
  h3::PlanOptions options;
  options.rows = setup_.rows;
  options.backward = true;
  options.recompute = true;
  options.faults = side.operation_faults;
  PLUMBLINE_ASSIGN_OR_RETURN(
      std::unique_ptr<h3::Executor> executor,
      h3::Executor::Create(setup_.graph, *side.composition, *context_.registry,
                           side.reads_faulty_weights ? *faulty_weights_ : weights_, device_,
                           sinks_.back().get(), std::move(options)));
  const DeviceModelInputs& inputs = side.reads_faulty_inputs ? *faulty_inputs_ : *inputs_;
  PLUMBLINE_RETURN_IF_ERROR(inputs.Set(*executor));
  auto running = std::make_unique<ExecutorSide>(std::move(executor));
  const h3::Executor* const result = &running->executor();
  sides_.push_back(std::move(running));
  return result;
}

absl::StatusOr<const h3::Executor*> FullModelRun::AddKeptSide(const FullModelSide& side, bool save,
                                                              TensorFunction function) {
  // The files' types are known when the executor is there, and it wants its sink before.
  const auto outputs = std::make_shared<std::vector<OutputTensors*>>();
  PLUMBLINE_ASSIGN_OR_RETURN(
      const h3::Executor* executor,
      AddSide(side,
              [outputs, function = std::move(function)](
                  size_t index, const Tensor& tensor,
                  const std::vector<int64_t>& shape) -> absl::Status {
                for (OutputTensors* output : *outputs) {
                  PLUMBLINE_RETURN_IF_ERROR(output->tensors.Write(index, tensor));
                }
                return function(index, tensor, shape);
              }));
  if (executor == nullptr) return nullptr;
  if (save) {
    PLUMBLINE_RETURN_IF_ERROR(AddOutput("tensors", v1::ARTIFACT_ROLE_TENSORS,
                                        std::vector<bool>(inventory_.size(), true), *executor,
                                        outputs.get()));
  }
  if (std::find(setup_.kept.begin(), setup_.kept.end(), true) != setup_.kept.end()) {
    // A composition's name, in which '/' and ':' separate, as a part of a file's.
    const std::string name = absl::StrReplaceAll(side.name, {{"/", "-"}, {":", "-"}, {",", "-"}});
    PLUMBLINE_RETURN_IF_ERROR(AddOutput(absl::StrCat("kept-", name), v1::ARTIFACT_ROLE_KEPT_TENSORS,
                                        setup_.kept, *executor, outputs.get()));
  }
  return executor;
}

absl::Status FullModelRun::AddOutput(const std::string& file_name, v1::ArtifactRole role,
                                     const std::vector<bool>& chosen, const h3::Executor& executor,
                                     std::vector<OutputTensors*>* outputs) {
  OutputFile file;
  file.path = absl::StrCat(setup_.environment.output_folder, "/tensors-", outputs_.size());
  file.role = role;
  file.file_name = absl::StrCat(file_name, ".safetensors");
  file.media_type = kSafetensorsType;
  PLUMBLINE_ASSIGN_OR_RETURN(TensorFile tensors,
                             TensorFile::Create(file.path, inventory_, chosen, executor, &device_));
  outputs_.push_back(
      std::make_unique<OutputTensors>(OutputTensors{std::move(tensors), std::move(file)}));
  outputs->push_back(outputs_.back().get());
  return absl::OkStatus();
}

absl::Status FullModelRun::Tick(absl::string_view activity) {
  PLUMBLINE_RETURN_IF_ERROR(context_.check_cancelled());
  v1::Progress progress;
  progress.set_done(std::min(++done_, total_));
  progress.set_total(total_);
  progress.set_unit("tensors");
  progress.set_activity(absl::StrCat(setup_.inputs.label, ": ", activity));
  context_.on_progress(progress);
  return absl::OkStatus();
}

// A row of one modality alone is called what it is in the packed sequence.
drift::RowNamer FullModelRun::NamerOf(size_t index) const {
  const h3::PackedLayout& layout = setup_.inputs.values.layout;
  const std::vector<int64_t>* packed_rows = nullptr;
  switch (inventory_.RowsOf(index)) {
    case h3::RowSpace::kTimesteps:
    case h3::RowSpace::kVoxels:  // of the decoders, as the next
    case h3::RowSpace::kAudioLatents:
      return drift::NameOtherRow;
    case h3::RowSpace::kPacked:
      return drift::PackedRowNamer(layout);
    case h3::RowSpace::kText:
      packed_rows = &layout.text_indices;
      break;
    case h3::RowSpace::kVideo:
      packed_rows = &layout.video_indices;
      break;
    case h3::RowSpace::kAudio:
      packed_rows = &layout.audio_indices;
      break;
  }
  return [packed_rows, name_row = drift::PackedRowNamer(layout)](int64_t batch, int64_t row) {
    v1::RowLocation location = name_row(batch, (*packed_rows)[row]);
    location.set_row(static_cast<int32_t>(row));
    return location;
  };
}

absl::StatusOr<drift::ComparedTensor> FullModelRun::Described(
    size_t index, const Tensor& tensor, const std::vector<int64_t>& shape) const {
  drift::ComparedTensor described{tensor, shape, ""};
  if (device_.kind() != DeviceKind::kCpu && inventory_[index].IsGradient()) return described;
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, drift::ToHost(device_, tensor));
  described.sha256 = drift::TensorSha256(host.tensor);
  return described;
}

absl::StatusOr<v1::TensorComparison> FullModelRun::Compare(size_t index,
                                                           const ReferenceTensors& reference,
                                                           absl::string_view name,
                                                           const drift::ComparedTensor& x) {
  return drift::CompareOnDevice(device_, reference.name(), reference.Get(index), name, x,
                                NamerOf(index), threads_);
}

absl::Status FullModelRun::OnGolden(size_t index, const Tensor& tensor,
                                    const std::vector<int64_t>& shape) {
  PLUMBLINE_ASSIGN_OR_RETURN(drift::ComparedTensor described, Described(index, tensor, shape));
  report_.mutable_tensors(static_cast<int>(index))->set_golden_sha256(described.sha256);
  PLUMBLINE_RETURN_IF_ERROR(golden_.Put(index, tensor, shape, std::move(described.sha256)));
  return Tick(setup_.golden.name);
}

absl::Status FullModelRun::OnProvider(int provider, size_t index, const Tensor& tensor,
                                      const std::vector<int64_t>& shape) {
  const std::string& name = setup_.providers[provider].name;
  v1::FullModelTensor& report = *report_.mutable_tensors(static_cast<int>(index));
  v1::TensorComparison& error = *report.mutable_provider_errors(provider);
  PLUMBLINE_ASSIGN_OR_RETURN(drift::ComparedTensor described, Described(index, tensor, shape));
  PLUMBLINE_ASSIGN_OR_RETURN(error, Compare(index, golden_, name, described));
  report.set_golden_norm(error.reference_norm());
  if (provider == setup_.DefaultProvider()) {
    PLUMBLINE_RETURN_IF_ERROR(provider_.Put(index, tensor, shape, std::move(described.sha256)));
  }
  return Tick(name);
}

absl::Status FullModelRun::OnCandidate(size_t index, const Tensor& tensor,
                                       const std::vector<int64_t>& shape) {
  const std::string& name = setup_.candidate->name;
  PLUMBLINE_ASSIGN_OR_RETURN(const drift::ComparedTensor described,
                             Described(index, tensor, shape));
  PLUMBLINE_ASSIGN_OR_RETURN(candidate_.error[index], Compare(index, golden_, name, described));
  if (provider_.Contains(index)) {
    PLUMBLINE_ASSIGN_OR_RETURN(candidate_.drift[index], Compare(index, provider_, name, described));
  }
  return Tick(name);
}

absl::Status FullModelRun::OnAblated(int ablated, size_t index, const Tensor& tensor,
                                     const std::vector<int64_t>& shape) {
  const AblatedSide& about = setup_.ablation[ablated];
  PLUMBLINE_ASSIGN_OR_RETURN(const drift::ComparedTensor described,
                             Described(index, tensor, shape));
  PLUMBLINE_ASSIGN_OR_RETURN(ablated_[ablated].error[index],
                             Compare(index, golden_, about.side.name, described));
  if (about.group == kAllGroup) {
    PLUMBLINE_ASSIGN_OR_RETURN(const bool equal, HasBytesOfProvider(index, tensor));
    if (!equal) differs_from_provider_.push_back(inventory_[index].name);
  }
  return Tick(absl::StrCat("ablation, ", about.group));
}

absl::StatusOr<bool> FullModelRun::HasBytesOfProvider(size_t index, const Tensor& tensor) {
  const Tensor& reference = provider_.Get(index).tensor;
  if (reference.dtype != tensor.dtype) return false;
  v1::EqualityCheck check;
  PLUMBLINE_RETURN_IF_ERROR(drift::AddExecutionOnDevice(device_, reference, tensor, kAllGroup,
                                                        drift::NameOtherRow, &check));
  return check.result() == v1::EQUALITY_EQUAL;
}

}  // namespace plumbline::jobs
