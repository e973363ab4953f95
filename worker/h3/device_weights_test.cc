#include "worker/h3/device_weights.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/synchronization/mutex.h"
#include "kernels/device.h"
#include "worker/h3/synthetic_weights.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

// Counts how often each parameter is asked for, from whatever thread.
class CountingWeights : public WeightSource {
 public:
  explicit CountingWeights(const WeightSource& base) : WeightSource(base.config()), base_(base) {}

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    absl::MutexLock lock(&mutex_);
    ++reads_[std::string(name)];
    if (name == broken_) return absl::DataLossError("the disk says no");
    return base_.Get(name);
  }
  std::string Description() const override { return "counting"; }
  absl::StatusOr<std::string> Identity() const override { return base_.Identity(); }

  void Break(const std::string& name) {
    absl::MutexLock lock(&mutex_);
    broken_ = name;
  }
  std::map<std::string, int> reads() const {
    absl::MutexLock lock(&mutex_);
    return reads_;
  }

 private:
  absl::Status Hash(const ParameterSpec&, Sha256*) const override {
    return absl::UnimplementedError("no digest");
  }

  const WeightSource& base_;
  mutable absl::Mutex mutex_;
  mutable std::map<std::string, int> reads_ ABSL_GUARDED_BY(mutex_);
  std::string broken_ ABSL_GUARDED_BY(mutex_);
};

class DeviceWeightsTest : public testing::Test {
 protected:
  static constexpr char kOfBlock0[] = "transformer_blocks.0.attn.to_q.weight";
  static constexpr char kOfBlock1[] = "transformer_blocks.1.attn.to_q.weight";

  const std::shared_ptr<const WeightSource> base_ = MakeSyntheticWeights(TinyConfig(), 1);
  CountingWeights source_{*base_};
  const Graph graph_ = BuildTransformerGraph(TinyConfig());
  const std::unique_ptr<Device> device_ = MakeCpuDevice(1, 1 << 20).value();
  DeviceWeights weights_{&source_, device_.get()};
};

TEST_F(DeviceWeightsTest, ReadsEveryParameterOnceAPassPrefetchedOrNot) {
  for (bool prefetch : {false, true}) {
    CountingWeights source(*base_);
    DeviceWeights weights(&source, device_.get());
    for (int segment = 0; segment < static_cast<int>(graph_.segments().size()); ++segment) {
      ASSERT_TRUE(weights.Load(graph_, segment).ok());
      ASSERT_TRUE(weights.Load(graph_, segment).ok());
      if (prefetch && segment + 1 < static_cast<int>(graph_.segments().size())) {
        weights.Prefetch(graph_, segment + 1);
        weights.Prefetch(graph_, segment + 1);
      }
    }
    EXPECT_EQ(weights.loaded_bytes(), TotalParameterBytes(base_->parameters()));
    const std::map<std::string, int> reads = source.reads();
    EXPECT_EQ(reads.size(), base_->parameters().size());
    for (const auto& [name, count] : reads) EXPECT_EQ(count, 1) << name;
  }
}

TEST_F(DeviceWeightsTest, KeepsTheSegmentInUseWhileItLoadsTheNext) {
  ASSERT_TRUE(weights_.Load(graph_, 1).ok());
  const Tensor before = weights_.Find(kOfBlock0).value();
  weights_.Prefetch(graph_, 2);
  EXPECT_EQ(weights_.Find(kOfBlock0).value().data, before.data);
  EXPECT_FALSE(weights_.Find(kOfBlock1).ok());
  ASSERT_TRUE(weights_.Load(graph_, 2).ok());
  EXPECT_FALSE(weights_.Find(kOfBlock0).ok());
  const WeightView expected = base_->Get(kOfBlock1).value();
  const Tensor found = weights_.Find(kOfBlock1).value();
  EXPECT_EQ(expected.Bytes(),
            absl::MakeConstSpan(static_cast<const uint8_t*>(found.data), found.NumBytes()));
}

TEST_F(DeviceWeightsTest, DropsASegmentThatWasNotTheNext) {
  ASSERT_TRUE(weights_.Load(graph_, 0).ok());
  weights_.Prefetch(graph_, 1);
  ASSERT_TRUE(weights_.Load(graph_, 2).ok());
  EXPECT_TRUE(weights_.Find(kOfBlock1).ok());
  EXPECT_FALSE(weights_.Find(kOfBlock0).ok());
}

TEST_F(DeviceWeightsTest, AnErrorOfThePrefetchComesOutOfTheLoad) {
  source_.Break(kOfBlock1);
  ASSERT_TRUE(weights_.Load(graph_, 1).ok());
  weights_.Prefetch(graph_, 2);
  EXPECT_EQ(weights_.Load(graph_, 2).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(weights_.Find(kOfBlock0).ok());
  source_.Break("");
  EXPECT_TRUE(weights_.Load(graph_, 2).ok());
}

}  // namespace
}  // namespace plumbline::h3
