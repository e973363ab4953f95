// The provider's attention over several tiles, heads and items, against the formula in float64.
#include <gtest/gtest.h>

#include <cmath>
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

// Everything of one head, float64.
struct Reference {
  std::vector<float> output, grad_q, grad_k, grad_v;  // (rows, head width)
};

Reference Compute(const CapturedNode& node, int64_t item, int64_t head) {
  const int64_t first = head * kHeadWidth;
  const Tensor& q = node.inputs[0];
  const Tensor& k = node.inputs[1];
  const Tensor& v = node.inputs[2];
  const double scale = 1.0 / std::sqrt(static_cast<double>(kHeadWidth));
  std::vector<double> output(kRows * kHeadWidth), grad_q(output), grad_k(output), grad_v(output);
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
    double weighted = 0;
    for (int64_t j = 0; j < kRows; ++j) {
      p[j] /= sum;
      dp[j] = 0;
      for (int64_t c = 0; c < kHeadWidth; ++c) {
        const double grad = At(node.grad_output, item, i, first + c);
        output[i * kHeadWidth + c] += p[j] * At(v, item, j, first + c);
        grad_v[j * kHeadWidth + c] += p[j] * grad;
        dp[j] += grad * At(v, item, j, first + c);
      }
      weighted += p[j] * dp[j];
    }
    for (int64_t j = 0; j < kRows; ++j) {
      const double ds = p[j] * (dp[j] - weighted) * scale;
      for (int64_t c = 0; c < kHeadWidth; ++c) {
        grad_q[i * kHeadWidth + c] += ds * At(k, item, j, first + c);
        grad_k[j * kHeadWidth + c] += ds * At(q, item, i, first + c);
      }
    }
  }
  const auto narrow = [](const std::vector<double>& x) {
    return std::vector<float>(x.begin(), x.end());
  };
  return {narrow(output), narrow(grad_q), narrow(grad_k), narrow(grad_v)};
}

class AttentionTest : public testing::TestWithParam<int64_t> {
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
    return RunCapturedNode(*MakeTiledAttention(GetParam()), *device, node_).value();
  }

  HostTensor q_, k_, v_, grad_;
  CapturedNode node_;
};

TEST_P(AttentionTest, IsWithinBfloat16OfTheFormula) {
  const NodeResult result = Run(2);
  for (int64_t item = 0; item < kBatch; ++item) {
    for (int64_t head = 0; head < kHeads; ++head) {
      Reference reference = Compute(node_, item, head);
      const auto error = [&](std::vector<float>& expected, const HostTensor& actual) {
        Tensor part = actual.view().Columns(head * kHeadWidth, kHeadWidth);
        part.data = part.Row<bfloat16>(0, item);
        part.batch = 1;
        return RelativeL2(Tensor::Dense(expected.data(), DType::kF32, 1, kRows, kHeadWidth), part);
      };
      // One rounding is 1.7e-3; a gradient sums rounded p or ds besides.
      EXPECT_LE(error(reference.output, *result.output), 3e-3) << item << ", " << head;
      EXPECT_LE(error(reference.grad_q, *result.grad_inputs[0]), 6e-3) << item << ", " << head;
      EXPECT_LE(error(reference.grad_k, *result.grad_inputs[1]), 6e-3) << item << ", " << head;
      EXPECT_LE(error(reference.grad_v, *result.grad_inputs[2]), 4e-3) << item << ", " << head;
    }
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

INSTANTIATE_TEST_SUITE_P(KeyTiles, AttentionTest, testing::Values(128, 64, 32));

}  // namespace
}  // namespace plumbline::provider
