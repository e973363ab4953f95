// Every provider composition on the whole small transformer, forward and backward: as far from our
// golden as the captured runs of the real code are from theirs, and the same bytes for every number
// of threads.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/safetensors.h"
#include "gtest/gtest.h"
#include "kernels/builtin.h"
#include "kernels/numerics/bfloat16.h"
#include "nlohmann/json.hpp"
#include "worker/h3/checkpoint.h"
#include "worker/h3/composition.h"
#include "worker/h3/executor.h"
#include "worker/h3/inventory_names.h"
#include "worker/h3/model_inputs.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

constexpr char kGolden[] = "tests/golden/";
// Captured errors up to this are of float32 tensors: sums in another order.
constexpr double kFloat32Error = 1e-4;
constexpr double kFloat32Bound = 1e-5;
// Which roundings happen to cancel differs between two runs; how many there are does not.
constexpr double kFactor = 1.5;
constexpr double kOwnTolerance = 5e-3;

const char* const kVariants[] = {"default", "sdpa-flash", "sdpa-efficient", "sdpa-math",
                                 "blas-cublaslt"};

// What a run computed: tap name -> values, widened.
class Recorder : public TapSink {
 public:
  bool Wants(absl::string_view, TapKind) const override { return true; }
  absl::Status OnTensor(const Tap& tap) override {
    const size_t count = static_cast<size_t>(tap.tensor.NumElements());
    std::vector<float>& values = values_[tap.name];
    values.resize(count);
    if (tap.tensor.dtype == DType::kBF16) {
      WidenBf16({static_cast<const bfloat16*>(tap.tensor.data), count}, values.data());
    } else {
      std::memcpy(values.data(), tap.tensor.data, count * sizeof(float));
    }
    return absl::OkStatus();
  }
  const std::map<std::string, std::vector<float>>& values() const { return values_; }

 private:
  std::map<std::string, std::vector<float>> values_;
};

using Errors = std::map<std::string, double>;  // by inventory name

double RelativeL2(const std::vector<float>& reference, const std::vector<float>& values) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    difference += (double{reference[i]} - values[i]) * (double{reference[i]} - values[i]);
    norm += double{reference[i]} * reference[i];
  }
  return std::sqrt(difference / norm);
}

class ProviderVariantsTest : public testing::Test {
 protected:
  void SetUp() override {
    source_ = OpenCheckpoint("synthetic:tiny", {}).value();
    graph_ = BuildTransformerGraph(source_->config());
    const SafetensorsFile file =
        SafetensorsFile::Open(std::string(kGolden) + "transformer_inputs.safetensors").value();
    inputs_ = ReadFullModelInputs(file, source_->config(), /*with_upstream=*/true).value();
    captured_ = nlohmann::json::parse(
        ReadFile(std::string(kGolden) + "transformer_variant_errors.json", 1 << 20).value());
    ASSERT_EQ(captured_["default"].size(), 92u);
  }

  double Captured(const std::string& variant, const std::string& tensor) const {
    return captured_.at(variant).at(tensor).get<double>();
  }

  Recorder Run(const std::string& text, int threads, int64_t batch) {
    Recorder recorder;
    const auto device = MakeCpuDevice(threads, int64_t{1} << 30).value();
    const ResolvedComposition composition =
        ResolveComposition(ParseComposition(text).value(), graph_, registry_, DeviceKind::kCpu)
            .value();
    DeviceWeights weights(source_.get(), device.get());
    PackedLayout& layout = inputs_.layout;
    PlanOptions options;
    options.rows = {layout.Rows(), inputs_.text.tensor.rows, inputs_.video.tensor.rows,
                    inputs_.audio.tensor.rows, static_cast<int64_t>(layout.timestep.size())};
    options.batch = batch;
    options.backward = true;
    const std::unique_ptr<Executor> executor =
        Executor::Create(graph_, composition, registry_, weights, *device, &recorder, options)
            .value();
    const auto set = [&](const char* name, const Tensor& tensor) {
      const absl::Status status = executor->SetInput(name, tensor);
      EXPECT_TRUE(status.ok()) << status;
    };
    const auto set_indices = [&](const char* name, std::vector<int64_t>& indices) {
      set(name, Tensor::Dense(indices.data(), DType::kI64, 1, indices.size(), 1));
    };
    set("input.hidden_states", inputs_.video.tensor);
    set("input.audio_hidden_states", inputs_.audio.tensor);
    set("input.encoder_hidden_states", inputs_.text.tensor);
    set("timestep",
        Tensor::Dense(layout.timestep.data(), DType::kF32, 1, layout.timestep.size(), 1));
    set("position_ids",
        Tensor::Dense(layout.position_ids.data(), DType::kF64, 1, layout.Rows(), 3));
    set_indices("timestep_indices", layout.timestep_indices);
    set_indices("adaln_indices", layout.adaln_indices);
    set_indices("text_indices", layout.text_indices);
    set_indices("video_indices", layout.video_indices);
    set_indices("audio_indices", layout.audio_indices);
    EXPECT_TRUE(executor->SetUpstream("output.video", inputs_.upstream_video.tensor).ok());
    EXPECT_TRUE(executor->SetUpstream("output.audio", inputs_.upstream_audio.tensor).ok());
    const absl::Status status = executor->Run();
    EXPECT_TRUE(status.ok()) << status;
    for (const NodeTrace& node : executor->trace()) {
      EXPECT_EQ(node.actual, text) << node.node;
      EXPECT_TRUE(node.executed_forward) << node.node;
    }
    return recorder;
  }

  Errors ErrorsOf(const Recorder& run, const Recorder& golden) const {
    Errors errors;
    for (const auto& [name, captured] : captured_["default"].items()) {
      const std::string tap(TapOfInventoryName(name));
      const auto values = run.values().find(tap);
      const auto reference = golden.values().find(tap);
      if (values == run.values().end() || reference == golden.values().end() ||
          values->second.size() != reference->second.size()) {
        ADD_FAILURE() << name << " was not computed, or has another size";
        continue;
      }
      errors[name] = RelativeL2(reference->second, values->second);
    }
    return errors;
  }

  // Tells those tensors whose error is not of the captured size.
  void ExpectCapturedSizes(const std::string& variant, const Errors& errors) const {
    for (const auto& [name, error] : errors) {
      const double captured = Captured("default", name);
      if (captured <= kFloat32Error) {
        EXPECT_LE(error, kFloat32Bound) << variant << ", " << name;
      } else {
        EXPECT_LE(error, kFactor * captured) << variant << ", " << name;
        EXPECT_GE(error, captured / kFactor) << variant << ", " << name;
      }
    }
  }

  const Registry registry_ = MakeBuiltinRegistry();
  std::shared_ptr<const WeightSource> source_;
  Graph graph_;
  FullModelInputs inputs_;
  nlohmann::json captured_;
};

TEST_F(ProviderVariantsTest, ErrorsHaveTheCapturedSizesAndNoTwoTablesAreEqual) {
  const Recorder golden = Run("golden", 2, 1);
  std::set<Errors> tables;
  std::map<std::string, Errors> errors;
  for (const std::string variant : kVariants) {
    errors[variant] = ErrorsOf(Run("provider/" + variant, 2, 1), golden);
    ExpectCapturedSizes(variant, errors[variant]);
    EXPECT_TRUE(tables.insert(errors[variant]).second) << variant << " equals an earlier provider";
  }

  // The first attentions read what has been rounded in one way only, so there each variant has its
  // own captured error, not just the size of one: the math path's is the further one.
  for (const char* const tensor :
       {"nodes.token_refiner.refiner_blocks.0", "nodes.token_refiner.refiner_blocks.1",
        "nodes.token_refiner", "nodes.block.0"}) {
    for (const std::string variant : kVariants) {
      EXPECT_NEAR(errors[variant][tensor] / Captured(variant, tensor), 1.0, kOwnTolerance)
          << variant << ", " << tensor;
    }
  }

  // Ours over the captured default's, then over the captured variant's own.
  std::printf("%-72s", "tensor");
  for (const char* const variant : kVariants) std::printf(" %16s", variant);
  std::printf("\n");
  for (const auto& [name, unused] : errors["default"]) {
    if (Captured("default", name) <= kFloat32Error) continue;
    std::printf("%-72s", name.c_str());
    for (const std::string variant : kVariants) {
      const double error = errors[variant][name];
      std::printf("     %5.3f  %5.3f", error / Captured("default", name),
                  error / Captured(variant, name));
    }
    std::printf("\n");
  }
}

TEST_F(ProviderVariantsTest, TheThreadsChangeNoBit) {
  for (const std::string variant : kVariants) {
    const Recorder one = Run("provider/" + variant, 1, 1);
    for (const int threads : {2, 8}) {
      const Recorder more = Run("provider/" + variant, threads, 1);
      ASSERT_EQ(one.values().size(), more.values().size());
      for (const auto& [name, values] : one.values()) {
        const std::vector<float>& others = more.values().at(name);
        ASSERT_EQ(values.size(), others.size()) << name;
        EXPECT_EQ(std::memcmp(values.data(), others.data(), values.size() * sizeof(float)), 0)
            << variant << ", " << threads << " threads, " << name;
      }
    }
  }
}

TEST_F(ProviderVariantsTest, ABatchHasTheSameErrors) {
  const Recorder golden = Run("golden", 2, 2);
  for (const std::string variant : kVariants) {
    ExpectCapturedSizes(variant, ErrorsOf(Run("provider/" + variant, 2, 2), golden));
  }
}

}  // namespace
}  // namespace plumbline::h3
