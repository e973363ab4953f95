// Weights of real shards on a GPU: the next segment's come while the stream works on the present
// one.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_case.h"
#include "worker/h3/device_weights.h"
#include "worker/h3/file_weights.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

constexpr char kCheckpoint[] = "tests/golden/checkpoint";

std::vector<std::string> ParametersOf(const Graph& graph, int segment) {
  std::vector<std::string> names;
  for (NodeId id = graph.SegmentBegin(segment); id < graph.SegmentEnd(segment); ++id) {
    const std::vector<std::string>& parameters = graph.nodes()[id].parameters;
    names.insert(names.end(), parameters.begin(), parameters.end());
  }
  return names;
}

TEST(DeviceWeightsCuda, LoadsShardsASegmentAheadBesideTheStream) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  const auto opened = OpenFileWeights(std::filesystem::absolute(kCheckpoint), {"/"});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const WeightSource& source = **opened;
  const Graph graph = BuildTransformerGraph(source.config());
  DeviceWeights weights(&source, &device);

  // What the stream does with a segment while the next one comes.
  constexpr int64_t kSide = 1 << 14;
  constexpr int kCalls = 20;
  const DeviceBuffer from = device.Allocate(kSide * kSide * 4).value();
  const DeviceBuffer to = device.Allocate(kSide * kSide * 4).value();
  const auto keep_busy = [&] {
    for (int i = 0; i < kCalls; ++i) {
      ASSERT_TRUE(device
                      .Convert(device.Context(),
                               Tensor::Dense(from.data(), DType::kF32, 1, kSide, kSide),
                               Tensor::Dense(to.data(), DType::kF32, 1, kSide, kSide))
                      .ok());
    }
  };
  const int segments = static_cast<int>(graph.segments().size());
  for (int segment = 0; segment < segments; ++segment) {
    ASSERT_TRUE(weights.Load(graph, segment).ok());
    if (segment + 1 < segments) weights.Prefetch(graph, segment + 1);
    keep_busy();
    for (const std::string& name : ParametersOf(graph, segment)) {
      const Tensor found = weights.Find(name).value();
      const WeightView expected = source.Get(name).value();
      std::vector<uint8_t> bytes(found.NumBytes());
      ASSERT_TRUE(device.CopyToHost(found, bytes.data()).ok());
      EXPECT_EQ(expected.Bytes(), absl::MakeConstSpan(bytes)) << name;
    }
  }
  EXPECT_EQ(weights.loaded_bytes(), TotalParameterBytes(source.parameters()));
}

}  // namespace
}  // namespace plumbline::h3
