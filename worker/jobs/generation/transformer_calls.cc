#include "worker/jobs/generation/transformer_calls.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"
#include "worker/h3/parameters.h"
#include "worker/h3/planned_memory.h"
#include "worker/jobs/implementation_trace.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

constexpr absl::string_view kVideoOutput = "output.video";
constexpr absl::string_view kAudioOutput = "output.audio";
constexpr absl::string_view kTextInput = "input.encoder_hidden_states";

}  // namespace

bool TransformerCalls::Outputs::Wants(absl::string_view name, h3::TapKind kind) const {
  return kind == h3::TapKind::kForward && (name == kVideoOutput || name == kAudioOutput);
}

absl::Status TransformerCalls::Outputs::OnTensor(const h3::Tap& tap) {
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, drift::ToHost(device_, tap.tensor));
  const Tensor& tensor = host.tensor;
  if (tensor.dtype != DType::kF32 || !tensor.IsDense()) {
    return absl::InternalError(absl::StrCat(tap.name, " is not a dense float32 tensor"));
  }
  const float* const values = static_cast<const float*>(tensor.data);
  (tap.name == kVideoOutput ? velocities_.video : velocities_.audio)
      .assign(values, values + tensor.NumElements());
  return absl::OkStatus();
}

TransformerCalls::TransformerCalls(const h3::Graph& graph,
                                   const h3::ResolvedComposition& composition,
                                   const h3::WeightSource& weights, const JobContext& context,
                                   bool ignores_text)
    : graph_(graph),
      composition_(composition),
      context_(context),
      ignores_text_(ignores_text),
      weights_(&weights, context.device),
      weight_bytes_(h3::TotalParameterBytes(weights.parameters())),
      inputs_(context.device),
      outputs_(context.device) {}

absl::StatusOr<std::unique_ptr<TransformerCalls>> TransformerCalls::Make(
    const h3::Graph& graph, const h3::ResolvedComposition& composition,
    const h3::WeightSource& weights, const JobContext& context, bool ignores_text,
    const h3::RowCounts& rows) {
  std::unique_ptr<TransformerCalls> calls(
      new TransformerCalls(graph, composition, weights, context, ignores_text));
  PLUMBLINE_RETURN_IF_ERROR(calls->PlanMemory(rows));
  return calls;
}

absl::Status TransformerCalls::PlanMemory(const h3::RowCounts& rows) {
  Device& device = *context_.device;
  h3::PlanOptions options;
  options.rows = rows;
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t plan_bytes,
                             h3::PlannedBytes(graph_, composition_, *context_.registry, weights_,
                                              device, &outputs_, std::move(options)));
  const int64_t memory_bytes = device.MemoryBytes();
  int64_t needed_bytes = plan_bytes;
  if (device.kind() == DeviceKind::kCpu) {
    keeps_weights_ = weight_bytes_ <= memory_bytes / 2;
  } else {
    // For inputs, and for what lies unused between places.
    const int64_t spare_bytes = memory_bytes / 64;
    keeps_weights_ = weight_bytes_ + plan_bytes + spare_bytes <= memory_bytes;
    if (!keeps_weights_) {
      PLUMBLINE_ASSIGN_OR_RETURN(const int64_t two_segments, weights_.TwoSegmentBytes(graph_));
      needed_bytes += two_segments + spare_bytes;
    }
  }
  if (!keeps_weights_ && needed_bytes > memory_bytes) {
    return WithNeededMemory(absl::ResourceExhaustedError(absl::StrCat(
                                "an evaluation of ", rows.packed, " rows needs ", needed_bytes,
                                " bytes of device memory; this worker has ", memory_bytes)),
                            needed_bytes);
  }
  if (keeps_weights_) weights_.KeepAll();
  return absl::OkStatus();
}

TransformerCalls::~TransformerCalls() {
  stop_loading_ = true;
  if (loading_.valid()) loading_.wait();
}

void TransformerCalls::StartLoading() {
  if (keeps_weights_) {
    loading_ = std::async(std::launch::async, [this] { return LoadAll(); });
  } else {
    weights_.Prefetch(graph_, 0);
  }
}

absl::Status TransformerCalls::LoadAll() {
  const absl::Time start = context_.clock->Now();
  const int segments = static_cast<int>(graph_.segments().size());
  for (int segment = 0; segment < segments; ++segment) {
    if (stop_loading_) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(weights_.Load(graph_, segment));
  }
  // Some may be made by work that is only enqueued.
  PLUMBLINE_RETURN_IF_ERROR(context_.device->Synchronize());
  Log(LogLevel::kInfo, "weights loaded",
      {{"bytes", weights_.loaded_bytes()},
       {"seconds", absl::ToDoubleSeconds(context_.clock->Now() - start)}});
  return absl::OkStatus();
}

absl::Status TransformerCalls::PrepareExecutor(const StepInputs& inputs) {
  const h3::RowCounts rows = RowsOf(*inputs.layout);
  if (executor_ != nullptr && timesteps_ == rows.timesteps) return absl::OkStatus();
  executor_.reset();  // First, so that its memory is free.
  h3::PlanOptions options;
  options.rows = rows;
  PLUMBLINE_ASSIGN_OR_RETURN(
      executor_, h3::Executor::Create(graph_, composition_, *context_.registry, weights_,
                                      *context_.device, &outputs_, std::move(options)));
  timesteps_ = rows.timesteps;
  return absl::OkStatus();
}

absl::Status TransformerCalls::SetInputs(const StepInputs& inputs) {
  for (const auto& [name, tensor] : GraphInputs(inputs)) {
    if (ignores_text_ && name == kTextInput) {
      PLUMBLINE_ASSIGN_OR_RETURN(
          const h3::HostTensor zeros,
          h3::AllocateHostTensor(tensor.dtype, tensor.batch, tensor.rows, tensor.width));
      std::memset(zeros.tensor.data, 0, zeros.tensor.NumBytes());
      PLUMBLINE_RETURN_IF_ERROR(inputs_.PutHost(name, zeros.tensor));
    } else {
      PLUMBLINE_RETURN_IF_ERROR(inputs_.PutHost(name, tensor));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor on_device, inputs_.Find(name));
    PLUMBLINE_RETURN_IF_ERROR(executor_->SetInput(name, on_device));
  }
  return absl::OkStatus();
}

absl::StatusOr<Velocities> TransformerCalls::Evaluate(const StepInputs& inputs) {
  if (loading_.valid()) PLUMBLINE_RETURN_IF_ERROR(loading_.get());
  PLUMBLINE_RETURN_IF_ERROR(PrepareExecutor(inputs));
  PLUMBLINE_RETURN_IF_ERROR(SetInputs(inputs));
  const int segments = static_cast<int>(graph_.segments().size());
  for (int segment = 0; segment < segments; ++segment) {
    PLUMBLINE_RETURN_IF_ERROR(context_.check_cancelled());
    PLUMBLINE_RETURN_IF_ERROR(weights_.Load(graph_, segment));
    // Behind the last comes the next evaluation's first.
    if (!keeps_weights_) weights_.Prefetch(graph_, (segment + 1) % segments);
    PLUMBLINE_RETURN_IF_ERROR(executor_->Forward(segment));
  }
  return outputs_.Take();
}

v1::ImplementationTrace TransformerCalls::Trace() const {
  return MakeImplementationTrace(graph_, executor_->trace(), /*backward=*/false);
}

}  // namespace plumbline::jobs
