// How long the small decoders take, against the sum of their matrix products: what they would take
// if everything else cost nothing.
//
//   decode_bench [THREADS]     default: 2
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/builtin.h"
#include "worker/h3/decoders/compositions.h"
#include "worker/h3/decoders/graphs.h"
#include "worker/h3/decoders/video_decoder.h"
#include "worker/h3/decoders/weights.h"
#include "worker/h3/executor.h"

namespace plumbline::h3 {
namespace {

constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr int kRuns = 9;

using Seconds = std::chrono::duration<double>;

// What operations of a kind took, in a run.
struct Times {
  double products = 0;
  double attention = 0;
  double rest = 0;
};

// Passes calls on and adds up their time.
class TimedOperation final : public Operation {
 public:
  TimedOperation(std::shared_ptr<const Operation> operation, double* seconds)
      : operation_(std::move(operation)), seconds_(seconds) {}

  Precision precision() const override { return operation_->precision(); }
  absl::Status Check(const ForwardCall& call) const override { return operation_->Check(call); }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return operation_->ForwardWorkspaceBytes(call, context);
  }
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const auto start = std::chrono::steady_clock::now();
    absl::Status done = operation_->Forward(context, call);
    *seconds_ += Seconds(std::chrono::steady_clock::now() - start).count();
    return done;
  }

 private:
  const std::shared_ptr<const Operation> operation_;
  double* const seconds_;
};

struct Case {
  std::string name;
  const Graph* graph;
  const ParameterSource* weights;
  RowCounts rows;
  int64_t batch;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Medians of kRuns runs, by where the time went.
absl::Status Measure(const Case& subject, const std::string& implementation,
                     const Registry& registry, Device& device) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Composition composition, ParseComposition(implementation));
  PLUMBLINE_ASSIGN_OR_RETURN(
      const ResolvedComposition resolved,
      ResolveComposition(composition, *subject.graph, registry, device.kind()));
  DeviceWeights weights(subject.weights, &device);
  weights.KeepAll();
  Times times;
  PlanOptions options;
  options.rows = subject.rows;
  options.batch = subject.batch;
  for (const Node& node : subject.graph->nodes()) {
    const bool is_product = node.op == OpKind::kDecoderLinear || node.op == OpKind::kConv1d ||
                            node.op == OpKind::kConvTranspose1d;
    double* const seconds = is_product                             ? &times.products
                            : node.op == OpKind::kDecoderAttention ? &times.attention
                                                                   : &times.rest;
    options.faults.push_back({node.name, [seconds](std::shared_ptr<const Operation> operation) {
                                return std::make_shared<TimedOperation>(std::move(operation),
                                                                        seconds);
                              }});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                             Executor::Create(*subject.graph, resolved, registry, weights, device,
                                              /*sink=*/nullptr, std::move(options)));
  for (const Value& value : subject.graph->values()) {
    if (value.producer != kNoNode) continue;
    const int64_t rows = subject.rows.Of(value.rows) * value.row_factor + value.extra_rows;
    std::vector<double> positions(static_cast<size_t>(rows * value.width), 0.5);
    std::vector<float> latents(static_cast<size_t>(subject.batch * rows * value.width));
    for (size_t i = 0; i < latents.size(); ++i) latents[i] = std::sin(static_cast<float>(i));
    const bool is_positions = value.dtype == DType::kF64;
    void* const data = is_positions ? static_cast<void*>(positions.data()) : latents.data();
    PLUMBLINE_RETURN_IF_ERROR(executor->SetInput(
        value.name,
        Tensor::Dense(data, value.dtype, value.batched ? subject.batch : 1, rows, value.width)));
  }
  PLUMBLINE_RETURN_IF_ERROR(executor->Run());  // Loads the weights.
  std::vector<double> total, products, attention, rest;
  for (int run = 0; run < kRuns; ++run) {
    times = Times();
    const auto start = std::chrono::steady_clock::now();
    PLUMBLINE_RETURN_IF_ERROR(executor->Run());
    total.push_back(Seconds(std::chrono::steady_clock::now() - start).count());
    products.push_back(times.products);
    attention.push_back(times.attention);
    rest.push_back(times.rest);
  }
  const auto milliseconds = [](const std::vector<double>& seconds) {
    return 1000 * Median(seconds);
  };
  std::printf("%-28s %-10s %9.2f %9.2f %9.2f %9.2f   %6.2f   %5.1f %%\n", subject.name.c_str(),
              implementation.c_str(), milliseconds(total), milliseconds(products),
              milliseconds(attention), milliseconds(rest), Median(total) / Median(products),
              100 *
                  (*std::max_element(total.begin(), total.end()) -
                   *std::min_element(total.begin(), total.end())) /
                  Median(total));
  return absl::OkStatus();
}

absl::Status Run(int threads) {
  const Registry registry = MakeBuiltinRegistry();
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                             MakeCpuDevice(threads, kMemoryBytes));
  const VideoDecoderConfig video_config = TinyVideoDecoder();
  const AudioDecoderConfig audio_config = TinyAudioDecoder();
  const Graph video = BuildVideoDecoderGraph(video_config);
  const Graph audio = BuildAudioDecoderGraph(audio_config);
  const auto video_weights = MakeSyntheticDecoder(video_config);
  const auto audio_weights = MakeSyntheticDecoder(audio_config);
  RowCounts voxels, latents;
  voxels.voxels = 7 * 6 * 8;
  latents.audio_latents = 37;
  const Case cases[] = {{"video clip of 128 x 96", &video, video_weights.get(), voxels, 1},
                        {"sound of 37 latents, stereo", &audio, audio_weights.get(), latents, 2}};
  std::printf("Small decoders on %d threads, medians of %d runs in ms\n\n", threads, kRuns);
  std::printf("%-28s %-10s %9s %9s %9s %9s   %6s   %s\n", "", "", "all", "products", "attention",
              "rest", "ratio", "spread");
  for (const Case& subject : cases) {
    for (const char* implementation : {"golden", "provider", "candidate"}) {
      PLUMBLINE_RETURN_IF_ERROR(Measure(subject, implementation, registry, *device));
    }
  }
  std::printf("\nratio: all over the sum of the products\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace plumbline::h3

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const absl::Status status = plumbline::h3::Run(std::max(threads, 1));
  if (status.ok()) return 0;
  std::fprintf(stderr, "decode_bench: %s\n", status.ToString().c_str());
  return 1;
}
