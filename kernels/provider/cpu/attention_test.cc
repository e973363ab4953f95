// The provider's attentions over several tiles, heads and items, against the formula in float64,
// and their gradients also against the same formula with each kernel's roundings put in.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/device.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 301;  // no multiple of a tile
constexpr int64_t kHeads = 2;
constexpr int64_t kHeadWidth = 24;
constexpr int64_t kWidth = kHeads * kHeadWidth;

HostTensor Synthetic(const std::string& name, double scale) {
  HostTensor tensor(DType::kBF16, kBatch, kRows, kWidth);
  std::vector<float> values(static_cast<size_t>(tensor.view().NumElements()));
  FillSynthetic(name, 0, {scale, 0.0}, 0, absl::MakeSpan(values));
  RoundToBf16(values, static_cast<bfloat16*>(tensor.view().data));
  return tensor;
}

double At(const Tensor& tensor, int64_t item, int64_t row, int64_t channel) {
  return WidenBf16(tensor.Row<bfloat16>(row, item)[channel]);
}

// One of the provider's attentions.
struct Kernel {
  const char* name;
  std::function<std::shared_ptr<const Operation>()> make;
  // Relative L2 from the formula. One rounding is 1.7e-3; where p or ds is rounded too, a sum of
  // them is further away.
  double output_error, query_and_key_error, value_error;
  // What a term of a gradient is rounded to, from p, d = dp - delta and the scale, all exact: ds
  // and what then multiplies dq and dk.
  std::function<double(double p, double d, double scale)> score_gradient;
  std::function<double(double scale)> final_factor;
  bool rounds_weights;     // p for dv
  bool delta_from_output;  // rowsum(dy y) with the rounded y; otherwise rowsum(p dp)
};

double Round(double value) { return RoundThroughBf16(static_cast<float>(value)); }
double One(double) { return 1.0; }
double Itself(double scale) { return scale; }
double Scaled(double p, double d, double scale) { return Round(p * d * scale); }
double Unscaled(double p, double d, double) { return Round(p * d); }
double FromRounded(double p, double d, double scale) { return Round(Round(p) * d * scale); }
double Exact(double p, double d, double scale) { return p * d * scale; }

std::vector<Kernel> Kernels() {
  const auto tiled = [](int64_t key_tile, ScoreGradient score_gradient) {
    return [=] { return MakeTiledAttention(key_tile, score_gradient); };
  };
  return {
      {"default", tiled(128, ScoreGradient::kScaled), 3e-3, 6e-3, 4e-3, Scaled, One, true, true},
      {"flash", tiled(64, ScoreGradient::kUnscaled), 3e-3, 6e-3, 4e-3, Unscaled, Itself, true,
       true},
      {"efficient", tiled(32, ScoreGradient::kFromRoundedWeights), 3e-3, 6e-3, 4e-3, FromRounded,
       One, true, true},
      {"math", MakeMathAttention, 1.8e-3, 1.8e-3, 1.8e-3, Exact, One, false, false},
  };
}

std::vector<double> Narrow(const std::vector<double>& values) {
  std::vector<double> rounded;
  for (const double value : values) rounded.push_back(Round(value));
  return rounded;
}

// One head's output and gradients, (rows, head width) each.
struct HeadResults {
  std::vector<double> output, grad_q, grad_k, grad_v;
};

// The formula in float64. With `roundings` the gradients are those of that kernel, its own output
// given in `output`; without, they are exact.
HeadResults Compute(const CapturedNode& node, const Tensor& output, int64_t item, int64_t head,
                    const Kernel* roundings) {
  const int64_t first = head * kHeadWidth;
  const Tensor& q = node.inputs[0];
  const Tensor& k = node.inputs[1];
  const Tensor& v = node.inputs[2];
  const double scale = 1.0 / std::sqrt(static_cast<double>(kHeadWidth));
  const std::vector<double> zeros(kRows * kHeadWidth);
  HeadResults results = {zeros, zeros, zeros, zeros};
  std::vector<double> p(kRows), dp(kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < kRows; ++j) {
      double score = 0;
      for (int64_t c = 0; c < kHeadWidth; ++c)
        score += At(q, item, i, first + c) * At(k, item, j, first + c);
      p[j] = std::exp(score * scale);
      sum += p[j];
    }
    double delta = 0;
    for (int64_t j = 0; j < kRows; ++j) {
      p[j] /= sum;
      dp[j] = 0;
      const double weight = roundings != nullptr && roundings->rounds_weights ? Round(p[j]) : p[j];
      for (int64_t c = 0; c < kHeadWidth; ++c) {
        const double grad = At(node.grad_output, item, i, first + c);
        results.output[i * kHeadWidth + c] += p[j] * At(v, item, j, first + c);
        results.grad_v[j * kHeadWidth + c] += weight * grad;
        dp[j] += grad * At(v, item, j, first + c);
      }
      delta += p[j] * dp[j];
    }
    if (roundings != nullptr && roundings->delta_from_output) {
      delta = 0;
      for (int64_t c = 0; c < kHeadWidth; ++c)
        delta += At(node.grad_output, item, i, first + c) * At(output, item, i, first + c);
    }
    for (int64_t j = 0; j < kRows; ++j) {
      const double d = dp[j] - delta;
      const double ds = roundings == nullptr ? p[j] * d * scale
                                             : roundings->score_gradient(p[j], d, scale) *
                                                   roundings->final_factor(scale);
      for (int64_t c = 0; c < kHeadWidth; ++c) {
        results.grad_q[i * kHeadWidth + c] += ds * At(k, item, j, first + c);
        results.grad_k[j * kHeadWidth + c] += ds * At(q, item, i, first + c);
      }
    }
  }
  return results;
}

// One head of a whole tensor, as HeadResults has it.
std::vector<double> HeadOf(const Tensor& tensor, int64_t item, int64_t head) {
  std::vector<double> values;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kHeadWidth; ++c)
      values.push_back(At(tensor, item, row, head * kHeadWidth + c));
  }
  return values;
}

double Error(const std::vector<double>& expected, const std::vector<double>& actual) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

double Equal(const std::vector<double>& expected, const std::vector<double>& actual) {
  double equal = 0;
  for (size_t i = 0; i < expected.size(); ++i) equal += expected[i] == actual[i];
  return equal / static_cast<double>(expected.size());
}

class AttentionTest : public testing::TestWithParam<Kernel> {
 protected:
  AttentionTest()
      : q_(Synthetic("attention.q", 2.0)),
        k_(Synthetic("attention.k", 2.0)),
        v_(Synthetic("attention.v", 1.0)),
        grad_(Synthetic("attention.grad", 1.0)) {
    node_.op = OpKind::kAttention;
    node_.attributes.head_width = kHeadWidth;
    node_.inputs = {q_.view(), k_.view(), v_.view()};
    node_.input_has_gradient = {true, true, true};
    node_.output = q_.view();
    node_.grad_output = grad_.view();
  }

  NodeResult Run(int threads) {
    std::unique_ptr<Device> device = MakeCpuDevice(threads, int64_t{1} << 30).value();
    return RunCapturedNode(*GetParam().make(), *device, node_).value();
  }

  HostTensor q_, k_, v_, grad_;
  CapturedNode node_;
};

TEST_P(AttentionTest, IsWithinBfloat16OfTheFormula) {
  const Kernel& kernel = GetParam();
  const NodeResult result = Run(2);
  for (int64_t item = 0; item < kBatch; ++item) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const HeadResults expected = Compute(node_, result.output->view(), item, head, nullptr);
      const auto error = [&](const std::vector<double>& values, const HostTensor& actual) {
        return Error(values, HeadOf(actual.view(), item, head));
      };
      EXPECT_LE(error(expected.output, *result.output), kernel.output_error);
      EXPECT_LE(error(expected.grad_q, *result.grad_inputs[0]), kernel.query_and_key_error);
      EXPECT_LE(error(expected.grad_k, *result.grad_inputs[1]), kernel.query_and_key_error);
      EXPECT_LE(error(expected.grad_v, *result.grad_inputs[2]), kernel.value_error);
    }
  }
}

// What float32 sums leave of the exact ones changes a rounding here and there; a rounding at
// another place changes most of them.
TEST_P(AttentionTest, TheGradientsAreRoundedWhereTheKernelRounds) {
  const NodeResult result = Run(2);
  const auto equal = [&](const Kernel& kernel) {
    const HeadResults expected = Compute(node_, result.output->view(), 1, 1, &kernel);
    const auto fraction = [&](const std::vector<double>& values, size_t input) {
      return Equal(Narrow(values), HeadOf(result.grad_inputs[input]->view(), 1, 1));
    };
    return std::vector<double>{fraction(expected.grad_q, 0), fraction(expected.grad_k, 1),
                               fraction(expected.grad_v, 2)};
  };
  for (const double fraction : equal(GetParam())) EXPECT_GE(fraction, 0.97);
  for (const Kernel& other : Kernels()) {
    if (other.name == std::string(GetParam().name)) continue;
    EXPECT_LE(equal(other)[0], 0.8) << other.name;
    EXPECT_LE(equal(other)[1], 0.8) << other.name;
  }
}

TEST_P(AttentionTest, TheThreadsChangeNoBit) {
  const NodeResult one = Run(1);
  for (const int threads : {2, 8}) {
    const NodeResult more = Run(threads);
    EXPECT_TRUE(BitwiseEqual(one.output->view(), more.output->view())) << threads;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(BitwiseEqual(one.grad_inputs[i]->view(), more.grad_inputs[i]->view()))
          << threads << ", input " << i;
    }
  }
}

// A gradient that nobody wants changes none of the others.
TEST_P(AttentionTest, EachGradientCanStandAlone) {
  const NodeResult all = Run(2);
  for (size_t wanted = 0; wanted < 3; ++wanted) {
    node_.input_has_gradient = {wanted == 0, wanted == 1, wanted == 2};
    const NodeResult one = Run(2);
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(one.grad_inputs[i] != nullptr, i == wanted);
    }
    EXPECT_TRUE(BitwiseEqual(all.grad_inputs[wanted]->view(), one.grad_inputs[wanted]->view()))
        << wanted;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionTest, testing::ValuesIn(Kernels()),
                         [](const testing::TestParamInfo<Kernel>& kernel) {
                           return std::string(kernel.param.name);
                         });

}  // namespace
}  // namespace plumbline::provider
