// The provider's operations at odd shapes, two batch items and strided tables, against their
// formulas in float64: the outputs, and every gradient against central differences of the formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <list>
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
constexpr int64_t kRows = 5;
constexpr int64_t kTableRows = 3;
constexpr float kEpsilon = 1e-5f;
constexpr GemmPath kPaths[] = {GemmPath::kWholeSum, GemmPath::kSplitSum};

// Dense, batch items first.
using Values = std::vector<double>;
// From the inputs and then the parameters to the output.
using Formula = std::function<Values(const std::vector<Values>& tensors)>;

Values Read(const Tensor& tensor) {
  Values values;
  for (int64_t item = 0; item < tensor.batch; ++item) {
    for (int64_t row = 0; row < tensor.rows; ++row) {
      for (int64_t column = 0; column < tensor.width; ++column) {
        switch (tensor.dtype) {
          case DType::kBF16:
            values.push_back(WidenBf16(tensor.Row<bfloat16>(row, item)[column]));
            break;
          case DType::kF32:
            values.push_back(tensor.Row<float>(row, item)[column]);
            break;
          case DType::kF64:
            values.push_back(tensor.Row<double>(row, item)[column]);
            break;
          default:
            values.push_back(static_cast<double>(tensor.Row<int64_t>(row, item)[column]));
        }
      }
    }
  }
  return values;
}

double Error(const Values& expected, const Tensor& actual) {
  const Values values = Read(actual);
  if (values.size() != expected.size()) return std::nan("");
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    difference += (values[i] - expected[i]) * (values[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

class FormulaTest : public testing::Test {
 protected:
  Tensor Random(DType dtype, int64_t batch, int64_t rows, int64_t width, double offset = 0) {
    memory_.emplace_back(dtype, batch, rows, width);
    const Tensor& tensor = memory_.back().view();
    std::vector<float> values(static_cast<size_t>(tensor.NumElements()));
    FillSynthetic("formula." + std::to_string(memory_.size()), 0, {1.5, offset}, 0,
                  absl::MakeSpan(values));
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::kBF16) {
        static_cast<bfloat16*>(tensor.data)[i] = RoundToBf16(values[i]);
      } else {
        static_cast<float*>(tensor.data)[i] = values[i];
      }
    }
    return tensor;
  }

  // A table's view: some columns in the middle of it.
  Tensor Table(int64_t width) {
    return Random(DType::kBF16, 1, kTableRows, 3 * width).Columns(width, width);
  }

  // Row 1 of the table is named by no row.
  Tensor Index() {
    memory_.emplace_back(DType::kI64, 1, kRows, 1);
    for (int64_t row = 0; row < kRows; ++row)
      *memory_.back().view().Row<int64_t>(row) = row % 2 == 0 ? 2 : 0;
    return memory_.back().view();
  }

  // The first `differentiable` inputs have gradients. `tolerance` is a relative L2.
  void Expect(std::shared_ptr<const Operation> operation, OpKind op, std::vector<Tensor> inputs,
              size_t differentiable, std::vector<Tensor> parameters, const Tensor& output_like,
              const Attributes& attributes, double tolerance, const Formula& formula) {
    CapturedNode node;
    node.op = op;
    node.attributes = attributes;
    node.inputs = inputs;
    node.parameters = parameters;
    node.output = output_like;
    node.grad_output =
        Random(output_like.dtype, output_like.batch, output_like.rows, output_like.width);
    node.input_has_gradient.assign(inputs.size(), false);
    std::fill_n(node.input_has_gradient.begin(), differentiable, true);

    std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 28).value();
    const absl::StatusOr<NodeResult> result = RunCapturedNode(*operation, *device, node);
    ASSERT_TRUE(result.ok()) << result.status();

    std::vector<Values> tensors;
    for (const Tensor& tensor : inputs) tensors.push_back(Read(tensor));
    for (const Tensor& tensor : parameters) tensors.push_back(Read(tensor));
    EXPECT_LE(Error(formula(tensors), result->output->view()), tolerance) << "output";

    const Values upstream = Read(node.grad_output);
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (t >= differentiable && t < inputs.size()) continue;
      const HostTensor& grad =
          t < inputs.size() ? *result->grad_inputs[t] : *result->grad_parameters[t - inputs.size()];
      EXPECT_LE(Error(CentralDifferences(formula, tensors, t, upstream), grad.view()), tolerance)
          << "gradient of tensor " << t;
    }
  }

  static Values CentralDifferences(const Formula& formula, std::vector<Values> tensors, size_t t,
                                   const Values& upstream) {
    constexpr double kStep = 1e-4;
    Values gradient;
    for (size_t i = 0; i < tensors[t].size(); ++i) {
      const double value = tensors[t][i];
      tensors[t][i] = value + kStep;
      const Values above = formula(tensors);
      tensors[t][i] = value - kStep;
      const Values below = formula(tensors);
      tensors[t][i] = value;
      double sum = 0;
      for (size_t o = 0; o < upstream.size(); ++o) sum += upstream[o] * (above[o] - below[o]);
      gradient.push_back(sum / (2 * kStep));
    }
    return gradient;
  }

  std::list<HostTensor> memory_;
};

double Silu(double x) { return x / (1 + std::exp(-x)); }

// (rows, inner) times (outer, inner) transposed, plus a bias that may be empty.
Values Linear(const Values& x, const Values& weight, const Values& bias, int64_t inner) {
  const int64_t outer = static_cast<int64_t>(weight.size()) / inner;
  Values output;
  for (size_t row = 0; row < x.size() / inner; ++row) {
    for (int64_t o = 0; o < outer; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (int64_t k = 0; k < inner; ++k) sum += x[row * inner + k] * weight[o * inner + k];
      output.push_back(sum);
    }
  }
  return output;
}

Values RmsNorm(const Values& x, const Values& weight) {
  const size_t group = weight.size();
  Values output(x.size());
  for (size_t first = 0; first < x.size(); first += group) {
    double squares = 0;
    for (size_t i = 0; i < group; ++i) squares += x[first + i] * x[first + i];
    const double r = 1 / std::sqrt(squares / group + kEpsilon);
    for (size_t i = 0; i < group; ++i) output[first + i] = weight[i] * r * x[first + i];
  }
  return output;
}

// Tolerances: one rounding to bfloat16 is 1.7e-3 in the mean; a value that passes several has more.

TEST_F(FormulaTest, Linear) {
  for (const GemmPath path : kPaths) {
    for (const DType x_type : {DType::kBF16, DType::kF32}) {
      for (const DType weight_type : {DType::kBF16, DType::kF32}) {
        const bool exact = x_type == DType::kF32 && weight_type == DType::kF32;
        Expect(MakeLinear(path), OpKind::kLinear, {Random(x_type, kBatch, kRows, 37)}, 1,
               {Random(weight_type, 1, 9, 37), Random(weight_type, 1, 1, 9)},
               Tensor::Dense(nullptr, weight_type, kBatch, kRows, 9), {}, exact ? 1e-6 : 5e-3,
               [](const std::vector<Values>& t) { return provider::Linear(t[0], t[1], t[2], 37); });
      }
    }
  }
}

TEST_F(FormulaTest, LinearOfManyTiles) {
  // Forward alone: the differences would take long. No size is a multiple of a tile.
  const Tensor x = Random(DType::kBF16, kBatch, 131, 70);
  const Tensor weight = Random(DType::kBF16, 1, 300, 70);
  CapturedNode node;
  node.inputs = {x};
  node.parameters = {weight};
  node.input_has_gradient = {true};
  node.output = Tensor::Dense(nullptr, DType::kBF16, kBatch, 131, 300);
  node.grad_output = Random(DType::kBF16, kBatch, 131, 300);
  for (const GemmPath path : kPaths) {
    std::vector<NodeResult> results;
    for (const int threads : {1, 2, 8}) {
      std::unique_ptr<Device> device = MakeCpuDevice(threads, int64_t{1} << 28).value();
      results.push_back(RunCapturedNode(*MakeLinear(path), *device, node).value());
      const NodeResult& result = results.back();
      EXPECT_LE(Error(provider::Linear(Read(x), Read(weight), {}, 70), result.output->view()),
                3e-3);
      EXPECT_TRUE(BitwiseEqual(results[0].output->view(), result.output->view())) << threads;
      EXPECT_TRUE(BitwiseEqual(results[0].grad_inputs[0]->view(), result.grad_inputs[0]->view()));
      EXPECT_TRUE(
          BitwiseEqual(results[0].grad_parameters[0]->view(), result.grad_parameters[0]->view()));
    }
  }
}

TEST_F(FormulaTest, TheSplitPathAddsItsSlicesInOrder) {
  std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 28).value();
  const auto multiply = [&](GemmPath path, const Tensor& x, const Tensor& weight) {
    CapturedNode node;
    node.inputs = {x};
    node.parameters = {weight};
    node.input_has_gradient = {false};
    node.output = Tensor::Dense(nullptr, DType::kF32, 1, kRows, 9);
    node.grad_output = Random(DType::kF32, 1, kRows, 9);
    NodeResult result = RunCapturedNode(*MakeLinear(path), *device, node).value();
    const float* const values = static_cast<float*>(result.output->view().data);
    return std::vector<float>(values, values + kRows * 9);
  };
  // A quarter of 200, rounded up to a multiple of 16, is 64.
  const Tensor x = Random(DType::kF32, 1, kRows, 200);
  const Tensor weight = Random(DType::kF32, 1, 9, 200);
  std::vector<float> expected(kRows * 9);
  for (const int64_t first : {0, 64, 128, 192}) {
    const int64_t count = std::min<int64_t>(64, 200 - first);
    const std::vector<float> slice =
        multiply(GemmPath::kWholeSum, x.Columns(first, count), weight.Columns(first, count));
    for (size_t i = 0; i < slice.size(); ++i) expected[i] += slice[i];
  }
  EXPECT_EQ(multiply(GemmPath::kSplitSum, x, weight), expected);
  EXPECT_NE(multiply(GemmPath::kWholeSum, x, weight), expected);
}

TEST_F(FormulaTest, AdalnProjection) {
  for (const GemmPath path : kPaths) {
    Expect(MakeAdalnProjection(path), OpKind::kAdalnProjection, {Random(DType::kF32, 1, 3, 6)}, 1,
           {Random(DType::kBF16, 1, 10, 6), Random(DType::kBF16, 1, 1, 10)},
           Tensor::Dense(nullptr, DType::kBF16, 1, 3, 10), {}, 5e-3,
           [](const std::vector<Values>& t) {
             Values activated;
             for (const double x : t[0]) activated.push_back(provider::Silu(x));
             return provider::Linear(activated, t[1], t[2], 6);
           });
  }
}

TEST_F(FormulaTest, TimeEmbedder) {
  for (const GemmPath path : kPaths) {
    Expect(MakeTimeEmbedder(path), OpKind::kTimeEmbedder, {Random(DType::kF32, 1, 3, 10)}, 1,
           {Random(DType::kF32, 1, 7, 10), Random(DType::kF32, 1, 1, 7),
            Random(DType::kF32, 1, 5, 7), Random(DType::kF32, 1, 1, 5)},
           Tensor::Dense(nullptr, DType::kF32, 1, 3, 5), {}, 1e-6,
           [](const std::vector<Values>& t) {
             Values hidden = provider::Linear(t[0], t[1], t[2], 10);
             for (double& x : hidden) x = provider::Silu(x);
             return provider::Linear(hidden, t[3], t[4], 7);
           });
  }
}

TEST_F(FormulaTest, RmsNorm) {
  Attributes attributes;
  attributes.epsilon = kEpsilon;
  Expect(MakeRmsNorm(), OpKind::kRmsNorm, {Random(DType::kBF16, kBatch, kRows, 3 * 37)}, 1,
         {Random(DType::kBF16, 1, 1, 37, 1.0)},
         Tensor::Dense(nullptr, DType::kBF16, kBatch, kRows, 3 * 37), attributes, 4e-3,
         [](const std::vector<Values>& t) { return provider::RmsNorm(t[0], t[1]); });
}

TEST_F(FormulaTest, ModulatedRmsNorm) {
  constexpr int64_t kWidth = 70;
  Attributes attributes;
  attributes.epsilon = kEpsilon;
  Expect(MakeModulatedRmsNorm(), OpKind::kModulatedRmsNorm,
         {Random(DType::kBF16, kBatch, kRows, kWidth), Table(kWidth), Table(kWidth), Index()}, 3,
         {Random(DType::kBF16, 1, 1, kWidth, 1.0)},
         Tensor::Dense(nullptr, DType::kBF16, kBatch, kRows, kWidth), attributes, 1e-2,
         [](const std::vector<Values>& t) {
           Values output = provider::RmsNorm(t[0], t[4]);
           for (size_t i = 0; i < output.size(); ++i) {
             const int64_t row = static_cast<int64_t>(t[3][i / kWidth % kRows]);
             const int64_t at = row * kWidth + i % kWidth;
             output[i] = output[i] * (1 + t[1][at]) + t[2][at];
           }
           return output;
         });
}

TEST_F(FormulaTest, GatedResidual) {
  constexpr int64_t kWidth = 70;
  Expect(MakeGatedResidual(), OpKind::kGatedResidual,
         {Random(DType::kBF16, kBatch, kRows, kWidth), Random(DType::kBF16, kBatch, kRows, kWidth),
          Table(kWidth), Index()},
         3, {}, Tensor::Dense(nullptr, DType::kBF16, kBatch, kRows, kWidth), {}, 1e-2,
         [](const std::vector<Values>& t) {
           Values output = t[0];
           for (size_t i = 0; i < output.size(); ++i) {
             const int64_t row = static_cast<int64_t>(t[3][i / kWidth % kRows]);
             output[i] += t[2][row * kWidth + i % kWidth] * t[1][i];
           }
           return output;
         });
}

TEST_F(FormulaTest, SumOfTwo) {
  for (const DType type : {DType::kBF16, DType::kF32}) {
    Expect(MakeResidual(), OpKind::kResidual,
           {Random(type, kBatch, kRows, 7), Random(type, kBatch, kRows, 7)}, 2, {},
           Tensor::Dense(nullptr, type, kBatch, kRows, 7), {}, 4e-3,
           [](const std::vector<Values>& t) {
             Values output = t[0];
             for (size_t i = 0; i < output.size(); ++i) output[i] += t[1][i];
             return output;
           });
  }
}

TEST_F(FormulaTest, SwiGlu) {
  constexpr int64_t kWidth = 11;
  Expect(MakeSwiGlu(), OpKind::kSwiGlu, {Random(DType::kBF16, kBatch, kRows, 2 * kWidth)}, 1, {},
         Tensor::Dense(nullptr, DType::kBF16, kBatch, kRows, kWidth), {}, 5e-3,
         [](const std::vector<Values>& t) {
           Values output;
           for (int64_t row = 0; row < kBatch * kRows; ++row) {
             for (int64_t i = 0; i < kWidth; ++i) {
               const double* const value = &t[0][row * 2 * kWidth + i];
               output.push_back(value[0] * provider::Silu(value[kWidth]));
             }
           }
           return output;
         });
}

TEST_F(FormulaTest, Rope) {
  constexpr int64_t kHeadWidth = 22;
  constexpr int64_t kFrequencies = 3;
  constexpr int64_t kHalf = 3 * kFrequencies;
  Attributes attributes;
  attributes.head_width = kHeadWidth;
  attributes.rotary_frequencies = kFrequencies;
  attributes.rotary_theta = 100;
  HostTensor positions(DType::kF64, 1, kRows, 3);
  for (int64_t i = 0; i < 3 * kRows; ++i)
    static_cast<double*>(positions.view().data)[i] = 0.75 * static_cast<double>(i) - 3;
  Expect(MakeRope(), OpKind::kRope,
         {Random(DType::kBF16, kBatch, kRows, 2 * kHeadWidth), positions.view()}, 1, {},
         Tensor::Dense(nullptr, DType::kBF16, kBatch, kRows, 2 * kHeadWidth), attributes, 6e-3,
         [](const std::vector<Values>& t) {
           Values output = t[0];
           for (size_t first = 0; first < output.size(); first += kHeadWidth) {
             const int64_t row = static_cast<int64_t>(first) / (2 * kHeadWidth) % kRows;
             for (int64_t i = 0; i < kHalf; ++i) {
               const double frequency =
                   std::pow(100.0, -static_cast<double>(i % kFrequencies) / kFrequencies);
               const double angle = t[1][row * 3 + i / kFrequencies] * frequency;
               const double x1 = t[0][first + i];
               const double x2 = t[0][first + kHalf + i];
               output[first + i] = x1 * std::cos(angle) - x2 * std::sin(angle);
               output[first + kHalf + i] = x2 * std::cos(angle) + x1 * std::sin(angle);
             }
           }
           return output;
         });
}

}  // namespace
}  // namespace plumbline::provider
