#include "worker/bench/cuda/block_times.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/bench/cuda/timing.h"
#include "kernels/builtin.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/synthetic.h"
#include "worker/h3/composition.h"
#include "worker/h3/config.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/executor.h"
#include "worker/h3/synthetic_weights.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline {
namespace {

constexpr int64_t kRowCounts[] = {264, 925, 3160, 38912};
constexpr int64_t kTimesteps = 3;
constexpr int64_t kModalities = 3;
constexpr uint64_t kSeed = 1;
constexpr char kUpstream[] = "block.0/residual_mlp";

// What a block reads, on the device.
class BlockInputs {
 public:
  static absl::StatusOr<BlockInputs> Make(Device& device, const h3::TransformerConfig& config,
                                          int64_t rows) {
    BlockInputs inputs;
    PLUMBLINE_RETURN_IF_ERROR(inputs.Random(device, "block.input", rows, config.hidden_size));
    PLUMBLINE_RETURN_IF_ERROR(
        inputs.Random(device, "block.temb", kTimesteps, config.time_embed_dim));
    PLUMBLINE_RETURN_IF_ERROR(inputs.Random(device, kUpstream, rows, config.hidden_size));
    std::vector<double> positions(static_cast<size_t>(3 * rows));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<double>(i % 997) / 7;
    PLUMBLINE_RETURN_IF_ERROR(
        inputs.Copy(device, "position_ids", DType::kF64, rows, 3, positions.data()));
    std::vector<int64_t> indices(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      indices[static_cast<size_t>(row)] = row * kTimesteps * kModalities / rows;
    }
    PLUMBLINE_RETURN_IF_ERROR(
        inputs.Copy(device, "adaln_indices", DType::kI64, rows, 1, indices.data()));
    return inputs;
  }

  absl::Status Give(h3::Executor& executor, bool backward) const {
    for (const auto& [name, tensor] : tensors_) {
      if (name != kUpstream) {
        PLUMBLINE_RETURN_IF_ERROR(executor.SetInput(name, tensor));
      } else if (backward) {
        PLUMBLINE_RETURN_IF_ERROR(executor.SetUpstream(name, tensor));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Tensor> Add(Device& device, const std::string& name, DType dtype, int64_t rows,
                             int64_t width) {
    const Tensor shape = Tensor::Dense(nullptr, dtype, 1, rows, width);
    PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer buffer, device.Allocate(shape.NumBytes()));
    Tensor tensor = shape;
    tensor.data = buffer.data();
    buffers_.push_back(std::move(buffer));
    tensors_.emplace_back(name, tensor);
    return tensor;
  }
  absl::Status Random(Device& device, const std::string& name, int64_t rows, int64_t width) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, Add(device, name, DType::kF32, rows, width));
    return FillSyntheticOnCuda(static_cast<cudaStream_t>(device.Context().stream), name, kSeed,
                               {1.5f, 0}, tensor);
  }
  absl::Status Copy(Device& device, const std::string& name, DType dtype, int64_t rows,
                    int64_t width, const void* values) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, Add(device, name, dtype, rows, width));
    return device.CopyToDevice(values, tensor);
  }

  std::vector<DeviceBuffer> buffers_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

}  // namespace

absl::Status BenchBlocks(const std::string& composition, nlohmann::json& results) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, MakeCudaDevice(0));
  const cudaStream_t stream = static_cast<cudaStream_t>(device->Context().stream);
  const Registry registry = MakeBuiltinRegistry();
  const h3::TransformerConfig config = h3::ReleasedConfig();
  const h3::Graph graph = h3::BuildBlockGraph(config, 0);
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition parsed, h3::ParseComposition(composition));
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::ResolvedComposition resolved,
                             h3::ResolveComposition(parsed, graph, registry, DeviceKind::kCuda));
  const auto source = h3::MakeSyntheticWeights(config, kSeed);
  h3::DeviceWeights weights(source.get(), device.get());
  PLUMBLINE_RETURN_IF_ERROR(weights.Load(graph, 0));

  results["blocks"] = nlohmann::json::array();
  for (const int64_t rows : kRowCounts) {
    PLUMBLINE_ASSIGN_OR_RETURN(const BlockInputs inputs, BlockInputs::Make(*device, config, rows));
    for (const bool backward : {false, true}) {
      h3::PlanOptions options;
      options.rows.packed = rows;
      options.rows.timesteps = kTimesteps;
      options.backward = backward;
      PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<h3::Executor> executor,
                                 h3::Executor::Create(graph, resolved, registry, weights, *device,
                                                      nullptr, std::move(options)));
      PLUMBLINE_RETURN_IF_ERROR(inputs.Give(*executor, backward));
      PLUMBLINE_ASSIGN_OR_RETURN(const Timing timing,
                                 TimeOnStream(stream, [&](int) { return executor->Run(); }));
      const char* const work = backward ? "forward+backward" : "forward";
      std::printf("%6lld block %-16s %10.4f ms [%.4f, %.4f]\n", static_cast<long long>(rows), work,
                  timing.median_ms, timing.least_ms, timing.most_ms);
      std::fflush(stdout);
      results["blocks"].push_back({{"rows", rows},
                                   {"work", work},
                                   {"median_ms", timing.median_ms},
                                   {"least_ms", timing.least_ms},
                                   {"most_ms", timing.most_ms}});
    }
  }
  return absl::OkStatus();
}

}  // namespace plumbline
