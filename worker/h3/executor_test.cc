// The executor on the whole small transformer: against captures of the model code, and against
// itself where two ways of running must give the same bytes.
#include "worker/h3/executor.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/safetensors.h"
#include "gtest/gtest.h"
#include "kernels/builtin.h"
#include "worker/h3/arena.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/composition.h"
#include "worker/h3/inventory_names.h"
#include "worker/h3/parameters.h"
#include "worker/h3/planned_memory.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

constexpr char kGolden[] = "tests/golden/";

struct Copy {
  Tensor tensor;
  std::vector<uint8_t> bytes;
};

// Keeps everything it is asked about and can feed it to another execution.
class Recorder : public TapSink, public TensorSource {
 public:
  bool Wants(absl::string_view name, TapKind) const override {
    return only_.empty() || name == only_;
  }
  absl::Status OnTensor(const Tap& tap) override {
    Copy& copy = tensors_[tap.name];
    const auto* bytes = static_cast<const uint8_t*>(tap.tensor.data);
    copy.tensor = tap.tensor;
    copy.bytes.assign(bytes, bytes + tap.tensor.NumBytes());
    copy.tensor.data = copy.bytes.data();
    order_.push_back(tap.name);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Find(absl::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    if (found == tensors_.end()) return absl::NotFoundError(name);
    return found->second.tensor;
  }
  void Only(std::string name) { only_ = std::move(name); }
  const std::map<std::string, Copy>& tensors() const { return tensors_; }
  const std::vector<std::string>& order() const { return order_; }

 private:
  std::string only_;
  std::map<std::string, Copy> tensors_;
  std::vector<std::string> order_;
};

void ExpectSameBytes(const Recorder& a, const Recorder& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, copy] : a.tensors()) {
    const auto other = b.tensors().find(name);
    ASSERT_NE(other, b.tensors().end()) << name;
    EXPECT_EQ(copy.bytes, other->second.bytes) << name;
  }
}

class ExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = MakeCpuDevice(/*threads=*/2, /*memory_bytes=*/int64_t{1} << 30);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    auto source = OpenCheckpoint("synthetic:tiny", {});
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *source;
    auto inputs = SafetensorsFile::Open(std::string(kGolden) + "transformer_inputs.safetensors");
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    inputs_ = std::make_unique<SafetensorsFile>(*std::move(inputs));
    graph_ = BuildTransformerGraph(source_->config());
  }

  ResolvedComposition Resolve(absl::string_view text) {
    const auto composition = ParseComposition(text);
    EXPECT_TRUE(composition.ok()) << composition.status();
    auto resolved = ResolveComposition(*composition, graph_, registry_, DeviceKind::kCpu);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return *std::move(resolved);
  }

  // A copy, since a file's bytes may lie at any address.
  Tensor Input(absl::string_view name, int64_t rows, int64_t width) {
    const TensorInfo* info = inputs_->Find(name);
    EXPECT_NE(info, nullptr) << name;
    auto copy = AllocateHostTensor(info->dtype, 1, rows, width);
    EXPECT_TRUE(copy.ok()) << copy.status();
    std::memcpy(copy->tensor.data, inputs_->Bytes(*info).data(), copy->tensor.NumBytes());
    copies_.push_back(*copy);
    return copy->tensor;
  }

  PlanOptions Options(bool backward) const {
    PlanOptions options;
    options.rows = {53, 7, 36, 10, 3};
    options.backward = backward;
    return options;
  }

  // Runs the captured inputs.
  std::vector<NodeTrace> Run(const ResolvedComposition& composition, PlanOptions options,
                             Recorder* recorder) {
    DeviceWeights weights(source_.get(), device_.get());
    auto executor =
        Executor::Create(graph_, composition, registry_, weights, *device_, recorder, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    if (!executor.ok()) return {};
    Executor& e = **executor;
    const auto set = [&](absl::string_view name, int64_t rows, int64_t width) {
      const absl::Status status = e.SetInput(name, Input(name, rows, width));
      EXPECT_TRUE(status.ok()) << status;
    };
    set("input.hidden_states", 36, 96);
    set("input.audio_hidden_states", 10, 32);
    set("input.encoder_hidden_states", 7, 64);
    set("timestep", 3, 1);
    set("position_ids", 53, 3);
    set("timestep_indices", 53, 1);
    set("text_indices", 7, 1);
    set("video_indices", 36, 1);
    set("audio_indices", 10, 1);
    std::vector<int64_t> adaln(53);
    const auto* tags = Input("token_tags", 53, 1).Row<int64_t>(0);
    const auto* indices = Input("timestep_indices", 53, 1).Row<int64_t>(0);
    for (int i = 0; i < 53; ++i) adaln[i] = indices[i] * 3 + tags[i];
    EXPECT_TRUE(
        e.SetInput("adaln_indices", Tensor::Dense(adaln.data(), DType::kI64, 1, 53, 1)).ok());
    if (options.backward) {
      EXPECT_TRUE(e.SetUpstream("output.video", Input("upstream.video", 36, 96)).ok());
      EXPECT_TRUE(e.SetUpstream("output.audio", Input("upstream.audio", 10, 32)).ok());
    }
    const absl::Status status = e.Run();
    EXPECT_TRUE(status.ok()) << status;
    return e.trace();
  }

  const Registry registry_ = MakeBuiltinRegistry();
  std::unique_ptr<Device> device_;
  std::shared_ptr<const WeightSource> source_;
  std::unique_ptr<SafetensorsFile> inputs_;
  std::vector<HostTensor> copies_;
  Graph graph_;
};

TEST_F(ExecutorTest, GoldenReproducesTheCapturedTransformer) {
  Recorder recorder;
  PlanOptions options = Options(/*backward=*/true);
  options.recompute = true;
  const ResolvedComposition golden = Resolve("golden");
  Run(golden, options, &recorder);

  const auto capture =
      SafetensorsFile::Open(std::string(kGolden) + "transformer_fp32_cpu.safetensors");
  ASSERT_TRUE(capture.ok()) << capture.status();
  ASSERT_EQ(capture->tensors().size(), 92u);
  for (const TensorInfo& info : capture->tensors()) {
    const auto found = recorder.tensors().find(TapOfInventoryName(info.name));
    ASSERT_NE(found, recorder.tensors().end()) << info.name;
    const absl::Span<const uint8_t> bytes = capture->Bytes(info);
    ASSERT_EQ(bytes.size(), found->second.bytes.size()) << info.name;
    double difference = 0, norm = 0;
    for (size_t i = 0; i < bytes.size() / 4; ++i) {
      float reference, value;
      std::memcpy(&reference, bytes.data() + 4 * i, 4);
      std::memcpy(&value, found->second.bytes.data() + 4 * i, 4);
      difference += (double{reference} - value) * (double{reference} - value);
      norm += double{reference} * reference;
    }
    const bool is_gradient = info.name.find(".grad") != std::string::npos ||
                             info.name.rfind("parameter.", 0) == 0 ||
                             info.name.rfind("input_gradients.", 0) == 0;
    EXPECT_LE(std::sqrt(difference / norm), is_gradient ? 5e-5 : 1e-5) << info.name;
  }
}

TEST_F(ExecutorTest, RecomputationGivesTheSameBytes) {
  for (const char* text : {"candidate", "provider", "golden"}) {
    const ResolvedComposition composition = Resolve(text);
    Recorder kept, recomputed;
    PlanOptions options = Options(/*backward=*/true);
    Run(composition, options, &kept);
    options.recompute = true;
    Run(composition, options, &recomputed);
    ExpectSameBytes(kept, recomputed);
  }
}

TEST_F(ExecutorTest, IsolatedFromItselfGivesTheSameBytes) {
  for (const char* text : {"candidate", "golden"}) {
    const ResolvedComposition composition = Resolve(text);
    Recorder chained, isolated;
    PlanOptions options = Options(/*backward=*/true);
    Run(composition, options, &chained);
    options.isolated_from = &chained;
    const std::vector<NodeTrace> trace = Run(composition, options, &isolated);
    ExpectSameBytes(chained, isolated);
    for (const NodeTrace& node : trace) {
      EXPECT_TRUE(node.executed_forward) << node.node;
      EXPECT_EQ(node.actual, node.requested) << node.node;
    }
  }
}

TEST_F(ExecutorTest, UntappedFusedRunGivesTheSameOutput) {
  const ResolvedComposition candidate = Resolve("candidate");
  Recorder all, output;
  output.Only("output.video");
  Run(candidate, Options(/*backward=*/false), &all);
  const std::vector<NodeTrace> trace = Run(candidate, Options(/*backward=*/false), &output);
  ASSERT_EQ(output.tensors().size(), 1u);
  EXPECT_EQ(output.tensors().at("output.video").bytes, all.tensors().at("output.video").bytes);
  bool fused = false;
  for (const NodeTrace& node : trace) fused |= node.actual != node.requested;
  EXPECT_TRUE(fused) << "no fused operation ran";
}

TEST_F(ExecutorTest, GoldenNodesInAMixedCompositionAreCastAtTheirEdges) {
  const ResolvedComposition hybrid = Resolve("candidate+golden:attention,block.1/swiglu");
  Recorder recorder, again;
  const std::vector<NodeTrace> trace = Run(hybrid, Options(/*backward=*/true), &recorder);
  Run(hybrid, Options(/*backward=*/true), &again);
  ExpectSameBytes(recorder, again);
  EXPECT_EQ(recorder.tensors().at("block.0/attention").tensor.dtype, DType::kF32);
  EXPECT_EQ(recorder.tensors().at("block.0/attention.grad").tensor.dtype, DType::kF32);
  EXPECT_EQ(recorder.tensors().at("block.0/o_proj").tensor.dtype, DType::kBF16);
  EXPECT_EQ(recorder.tensors().at("block.0/v_proj.grad").tensor.dtype, DType::kBF16);
  EXPECT_EQ(recorder.tensors().at("block.0/swiglu").tensor.dtype, DType::kBF16);
  EXPECT_EQ(recorder.tensors().at("block.1/swiglu").tensor.dtype, DType::kF32);
  for (const NodeTrace& node : trace) {
    if (node.node == "block.1/attention") {
      EXPECT_EQ(node.actual, "golden");
    }
  }
}

TEST_F(ExecutorTest, TapsComeInExecutionOrder) {
  Recorder recorder;
  Run(Resolve("candidate"), Options(/*backward=*/true), &recorder);
  std::vector<std::string> forward;
  for (const std::string& name : recorder.order()) {
    if (forward.size() < graph_.nodes().size()) forward.push_back(name);
  }
  for (size_t i = 0; i < forward.size(); ++i) EXPECT_EQ(forward[i], graph_.nodes()[i].name);
  EXPECT_EQ(recorder.order()[forward.size()], "output.audio.grad");
}

TEST_F(ExecutorTest, WrongShapesAreNamed) {
  const ResolvedComposition candidate = Resolve("candidate");
  DeviceWeights weights(source_.get(), device_.get());
  auto executor = Executor::Create(graph_, candidate, registry_, weights, *device_, nullptr,
                                   Options(/*backward=*/false));
  ASSERT_TRUE(executor.ok()) << executor.status();
  const absl::Status status =
      (*executor)->SetInput("input.hidden_states", Input("input.hidden_states", 18, 192));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("input.hidden_states"), std::string::npos);
  EXPECT_NE(status.message().find("(1, 36, 96)"), std::string::npos);
}

TEST_F(ExecutorTest, PlannedBytesAreThoseThatAnExecutorTakes) {
  for (const char* composition : {"golden", "candidate", "provider/default"}) {
    const ResolvedComposition resolved = Resolve(composition);
    for (bool backward : {false, true}) {
      DeviceWeights weights(source_.get(), device_.get());
      const auto planned =
          PlannedBytes(graph_, resolved, registry_, weights, *device_, nullptr, Options(backward));
      ASSERT_TRUE(planned.ok()) << planned.status();
      device_->ResetHighWater();
      const int64_t before = device_->HighWaterBytes();
      const auto executor = Executor::Create(graph_, resolved, registry_, weights, *device_,
                                             nullptr, Options(backward));
      ASSERT_TRUE(executor.ok()) << executor.status();
      EXPECT_EQ(*planned, device_->HighWaterBytes() - before) << composition << backward;
    }
  }
}

// The values between segments share memory where no backward reads them again.
TEST_F(ExecutorTest, ForwardAloneGivesTheSameBytesInLessMemory) {
  const ResolvedComposition golden = Resolve("golden");
  Recorder alone, with_backward;
  for (Recorder* recorder : {&alone, &with_backward}) recorder->Only("output.video");
  device_->ResetHighWater();
  Run(golden, Options(false), &alone);
  const int64_t alone_bytes = device_->HighWaterBytes();
  device_->ResetHighWater();
  Run(golden, Options(true), &with_backward);
  EXPECT_LT(alone_bytes, device_->HighWaterBytes() / 2);
  ExpectSameBytes(alone, with_backward);
}

// What nothing reads any more makes room, so that an evaluation of the released size takes little
// beside its weights.
TEST_F(ExecutorTest, AReleasedEvaluationFitsACardOfEightyGigabytes) {
  constexpr int64_t kCardBytes = 80'000'000'000;
  const auto released = OpenCheckpoint("synthetic:released", {});
  ASSERT_TRUE(released.ok()) << released.status();
  graph_ = BuildTransformerGraph((*released)->config());
  PlanOptions options;
  options.rows = {38912, 194, 38304, 414, 3};
  const int64_t weights_bytes = TotalParameterBytes((*released)->parameters());
  for (const char* composition : {"candidate", "provider/default"}) {
    DeviceWeights weights(released->get(), device_.get());
    const auto planned =
        PlannedBytes(graph_, Resolve(composition), registry_, weights, *device_, nullptr, options);
    ASSERT_TRUE(planned.ok()) << planned.status();
    // A sixty-fourth is left for the inputs and what lies between places.
    EXPECT_LT(*planned + weights_bytes + kCardBytes / 64, kCardBytes)
        << composition << ": " << *planned << " beside " << weights_bytes << " of weights";
    RecordProperty(composition[0] == 'c' ? "candidate_bytes" : "provider_bytes",
                   std::to_string(*planned));
  }
}

TEST(Arena, APlaceIsTheLowestThatIsFree) {
  const auto device = MakeCpuDevice(1, 1 << 20);
  ASSERT_TRUE(device.ok()) << device.status();
  Arena arena;
  const auto make = [] { return Tensor::Dense(nullptr, DType::kU8, 1, 1, 1000); };
  Tensor first = make(), second = make(), third = make(), fourth = make(), small = make();
  small.width = 10;
  Tensor elsewhere = make();
  arena.Reserve(&first);
  arena.Reserve(&second);
  arena.Reserve(&third);
  arena.Release(&elsewhere);  // Has no place here.
  arena.Release(&second);
  arena.Release(&second);  // Has none any more.
  arena.Reserve(&small);
  arena.Reserve(&fourth);  // Does not fit beside `small`.
  ASSERT_TRUE(arena.Allocate(**device).ok());
  const auto at = [&](const Tensor& tensor) {
    return static_cast<char*>(tensor.data) - static_cast<char*>(first.data);
  };
  EXPECT_EQ(at(second), 1024);
  EXPECT_EQ(at(third), 2048);
  EXPECT_EQ(at(small), 1024);
  EXPECT_EQ(at(fourth), 3072);
  EXPECT_EQ((*device)->HighWaterBytes(), 4096);
}

TEST_F(ExecutorTest, MemoryThatIsNotThereIsAStatus) {
  auto small = MakeCpuDevice(1, 64 << 10);
  ASSERT_TRUE(small.ok());
  DeviceWeights weights(source_.get(), small->get());
  const ResolvedComposition candidate = Resolve("candidate");
  const auto executor = Executor::Create(graph_, candidate, registry_, weights, **small, nullptr,
                                         Options(/*backward=*/true));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace plumbline::h3
