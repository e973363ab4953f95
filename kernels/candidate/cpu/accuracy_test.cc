// Every operation of the candidate, forward and backward, against naive float64 arithmetic without
// any rounding. The references are forwards alone: a gradient must be the derivative of the
// reference, by central differences, so that no derivation is shared with what is tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/candidate/cpu/random_case.h"
#include "kernels/device.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline {
namespace {

// A tensor's values as doubles, (batch * rows, width) whatever the strides.
struct Matrix {
  int64_t batch = 1, rows = 0, width = 0;
  std::vector<double> values;

  Matrix(int64_t batch, int64_t rows, int64_t width)
      : batch(batch), rows(rows), width(width), values(batch * rows * width) {}
  explicit Matrix(const Tensor& tensor) : Matrix(tensor.batch, tensor.rows, tensor.width) {
    for (int64_t item = 0; item < batch; ++item) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < width; ++i) at(item, row, i) = Value(tensor, item, row, i);
      }
    }
  }

  double& at(int64_t item, int64_t row, int64_t column) {
    return values[(item * rows + row) * width + column];
  }
  double at(int64_t item, int64_t row, int64_t column) const {
    return values[(item * rows + row) * width + column];
  }
  double shared(int64_t row, int64_t column) const { return at(0, row, column); }

  static double Value(const Tensor& tensor, int64_t item, int64_t row, int64_t column) {
    switch (tensor.dtype) {
      case DType::kBF16:
        return WidenBf16(tensor.Row<bfloat16>(row, item)[column]);
      case DType::kF32:
        return tensor.Row<float>(row, item)[column];
      case DType::kF64:
        return tensor.Row<double>(row, item)[column];
      default:
        return static_cast<double>(tensor.Row<int64_t>(row, item)[column]);
    }
  }
};

using Matrices = std::vector<Matrix>;

double ReferenceSilu(double x) { return x / (1 + std::exp(-x)); }

Matrix ReferenceLinear(const Matrix& x, const Matrix& weight, const Matrix* bias) {
  Matrix y(x.batch, x.rows, weight.rows);
  for (int64_t row = 0; row < x.batch * x.rows; ++row) {
    for (int64_t n = 0; n < weight.rows; ++n) {
      double sum = bias == nullptr ? 0 : bias->shared(0, n);
      for (int64_t k = 0; k < x.width; ++k) sum += x.at(0, row, k) * weight.shared(n, k);
      y.at(0, row, n) = sum;
    }
  }
  return y;
}

Matrix ReferenceActivation(Matrix x) {
  for (double& value : x.values) value = ReferenceSilu(value);
  return x;
}

Matrix ReferenceRmsNorm(const Matrix& x, const Matrix& weight, double epsilon) {
  Matrix y = x;
  for (int64_t row = 0; row < x.batch * x.rows; ++row) {
    for (int64_t first = 0; first < x.width; first += weight.width) {
      double sum = 0;
      for (int64_t i = 0; i < weight.width; ++i) sum += std::pow(x.at(0, row, first + i), 2);
      const double rms = std::sqrt(sum / static_cast<double>(weight.width) + epsilon);
      for (int64_t i = 0; i < weight.width; ++i) {
        y.at(0, row, first + i) *= weight.shared(0, i) / rms;
      }
    }
  }
  return y;
}

Matrix ReferenceRope(const Matrix& x, const Matrix& positions, const Attributes& attributes) {
  Matrix y = x;
  const int64_t half = 3 * attributes.rotary_frequencies;
  for (int64_t row = 0; row < x.batch * x.rows; ++row) {
    for (int64_t head = 0; head < x.width; head += attributes.head_width) {
      for (int64_t i = 0; i < half; ++i) {
        const double frequency = std::pow(attributes.rotary_theta,
                                          -static_cast<double>(i % attributes.rotary_frequencies) /
                                              static_cast<double>(attributes.rotary_frequencies));
        const double angle =
            positions.shared(row % x.rows, i / attributes.rotary_frequencies) * frequency;
        const double x1 = x.at(0, row, head + i);
        const double x2 = x.at(0, row, head + half + i);
        y.at(0, row, head + i) = x1 * std::cos(angle) - x2 * std::sin(angle);
        y.at(0, row, head + half + i) = x2 * std::cos(angle) + x1 * std::sin(angle);
      }
    }
  }
  return y;
}

Matrix ReferenceAttention(const Matrix& q, const Matrix& k, const Matrix& v, int64_t head_width) {
  Matrix y(q.batch, q.rows, q.width);
  std::vector<double> weights(q.rows);
  for (int64_t item = 0; item < q.batch; ++item) {
    for (int64_t head = 0; head < q.width; head += head_width) {
      for (int64_t row = 0; row < q.rows; ++row) {
        double total = 0;
        for (int64_t key = 0; key < q.rows; ++key) {
          double score = 0;
          for (int64_t d = head; d < head + head_width; ++d) {
            score += q.at(item, row, d) * k.at(item, key, d);
          }
          weights[key] = std::exp(score / std::sqrt(static_cast<double>(head_width)));
          total += weights[key];
        }
        for (int64_t key = 0; key < q.rows; ++key) {
          for (int64_t d = head; d < head + head_width; ++d) {
            y.at(item, row, d) += weights[key] / total * v.at(item, key, d);
          }
        }
      }
    }
  }
  return y;
}

Matrix Reference(const CapturedNode& node, const Matrices& in, const Matrices& parameters) {
  const Matrix& x = in[0];
  Matrix y(node.output.batch, node.output.rows, node.output.width);
  const auto for_each = [&y](const std::function<double(int64_t, int64_t, int64_t)>& value) {
    for (int64_t item = 0; item < y.batch; ++item) {
      for (int64_t row = 0; row < y.rows; ++row) {
        for (int64_t i = 0; i < y.width; ++i) y.at(item, row, i) = value(item, row, i);
      }
    }
    return y;
  };
  const auto index = [&in](size_t input, int64_t row) {
    return static_cast<int64_t>(in[input].shared(row, 0));
  };
  switch (node.op) {
    case OpKind::kLinear:
      return ReferenceLinear(x, parameters[0], parameters.size() > 1 ? &parameters[1] : nullptr);
    case OpKind::kAdalnProjection:
      return ReferenceLinear(ReferenceActivation(x), parameters[0], &parameters[1]);
    case OpKind::kTimeEmbedder:
      return ReferenceLinear(ReferenceActivation(ReferenceLinear(x, parameters[0], &parameters[1])),
                             parameters[2], &parameters[3]);
    case OpKind::kRmsNorm:
      return ReferenceRmsNorm(x, parameters[0], node.attributes.epsilon);
    case OpKind::kModulatedRmsNorm: {
      const Matrix n = ReferenceRmsNorm(x, parameters[0], node.attributes.epsilon);
      return for_each([&](int64_t item, int64_t row, int64_t i) {
        return n.at(item, row, i) * (1 + in[1].shared(index(3, row), i)) +
               in[2].shared(index(3, row), i);
      });
    }
    case OpKind::kRope:
      return ReferenceRope(x, in[1], node.attributes);
    case OpKind::kAttention:
      return ReferenceAttention(x, in[1], in[2], node.attributes.head_width);
    case OpKind::kGatedResidual:
      return for_each([&](int64_t item, int64_t row, int64_t i) {
        return x.at(item, row, i) + in[2].shared(index(3, row), i) * in[1].at(item, row, i);
      });
    case OpKind::kResidual:
      return for_each([&](int64_t item, int64_t row, int64_t i) {
        return x.at(item, row, i) + in[1].at(item, row, i);
      });
    case OpKind::kSwiGlu:
      return for_each([&](int64_t item, int64_t row, int64_t i) {
        return x.at(item, row, i) * ReferenceSilu(x.at(item, row, y.width + i));
      });
    case OpKind::kScatterRows:
      for (size_t source = 0; source < 3; ++source) {
        for (int64_t item = 0; item < y.batch; ++item) {
          for (int64_t row = 0; row < in[source].rows; ++row) {
            for (int64_t i = 0; i < y.width; ++i) {
              y.at(item, index(3 + source, row), i) = in[source].at(item, row, i);
            }
          }
        }
      }
      return y;
    case OpKind::kGatherRows:
      return for_each(
          [&](int64_t item, int64_t row, int64_t i) { return x.at(item, index(1, row), i); });
    case OpKind::kCast:
      return x;
    default:
      ADD_FAILURE() << "no reference for " << OpName(node.op);
      return y;
  }
}

// ||expected - actual|| / ||expected||.
double RelativeError(const std::vector<double>& expected, const std::vector<double>& actual) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (expected[i] - actual[i]) * (expected[i] - actual[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

// Bounds on the relative error: one for operations whose every tensor is float32, one for those
// that round to bfloat16 (whose spacing is 2^-8 of a value at most, half of it an error).
double Bound(const CapturedNode& node, const Tensor& result) {
  const auto is_float32 = [](const Tensor& tensor) { return tensor.dtype == DType::kF32; };
  const bool float32 = std::all_of(node.inputs.begin(), node.inputs.begin() + 1, is_float32) &&
                       std::all_of(node.parameters.begin(), node.parameters.end(), is_float32) &&
                       is_float32(node.output) && is_float32(result);
  return float32 ? 2e-6 : 6e-3;
}

class AccuracyTest : public testing::TestWithParam<int> {
 protected:
  // The derivative of sum(upstream * output) with respect to `*value`, an element of `in` or
  // `parameters`.
  static double Derivative(const CapturedNode& node, const Matrix& upstream, const Matrices& in,
                           const Matrices& parameters, double* value) {
    constexpr double kStep = 1e-4;
    const double at = *value;
    const auto objective = [&](double shifted) {
      *value = shifted;
      const Matrix y = Reference(node, in, parameters);
      double sum = 0;
      for (size_t i = 0; i < y.values.size(); ++i) sum += upstream.values[i] * y.values[i];
      return sum;
    };
    const double difference = objective(at + kStep) - objective(at - kStep);
    *value = at;
    return difference / (2 * kStep);
  }
};

TEST_P(AccuracyTest, ForwardAndBackward) {
  constexpr int kSamples = 24;
  CaseSizes sizes;
  sizes.head_width = GetParam();
  sizes.frequencies = sizes.head_width / 6;
  sizes.item_seeds = {1, 2};
  std::mt19937 random(7);
  const std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 30).value();
  for (const RandomCase& random_case : MakeRandomCases(sizes)) {
    const CapturedNode& node = random_case.node;
    const NodeResult result = RunCapturedNode(CandidateOperation(node.op), *device, node).value();
    Matrices in, parameters;
    for (const Tensor& tensor : node.inputs) in.emplace_back(tensor);
    for (const Tensor& tensor : node.parameters) parameters.emplace_back(tensor);
    EXPECT_LE(
        RelativeError(Reference(node, in, parameters).values, Matrix(result.output->view()).values),
        Bound(node, result.output->view()))
        << node.name;

    const Matrix upstream(node.grad_output);
    const auto check_gradient = [&](Matrix& values, const Tensor& gradient, const char* of,
                                    size_t number) {
      const Matrix computed(gradient);
      std::vector<double> expected, actual;
      for (int sample = 0; sample < kSamples; ++sample) {
        const size_t at = random() % values.values.size();
        expected.push_back(Derivative(node, upstream, in, parameters, &values.values[at]));
        actual.push_back(computed.values[at]);
      }
      EXPECT_LE(RelativeError(expected, actual), Bound(node, gradient) + 1e-6)
          << node.name << ", gradient of " << of << " " << number;
    };
    for (size_t i = 0; i < in.size(); ++i) {
      if (result.grad_inputs[i] != nullptr) {
        check_gradient(in[i], result.grad_inputs[i]->view(), "input", i);
      }
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      check_gradient(parameters[i], result.grad_parameters[i]->view(), "parameter", i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadWidths, AccuracyTest, testing::Values(16, 22, 40, 128));

TEST(Accuracy, TimeProjection) {
  constexpr int64_t kSteps = 5;
  constexpr int64_t kFrequencies = 13;
  HostTensor timestep(DType::kF32, 1, kSteps, 1);
  HostTensor output(DType::kF32, 1, kSteps, 2 * kFrequencies);
  const float values[kSteps] = {0, 0.25f, 0.5f, 0.999f, 1};
  for (int64_t i = 0; i < kSteps; ++i) *timestep.view().Row<float>(i) = values[i];
  const Tensor inputs[] = {timestep.view()};
  ForwardCall call;
  call.inputs = inputs;
  call.output = output.view();
  const Operation& operation = CandidateOperation(OpKind::kTimeProjection);
  ASSERT_TRUE(operation.Check(call).ok());
  const std::unique_ptr<Device> device = MakeCpuDevice(2, 1 << 20).value();
  ASSERT_TRUE(operation.Forward(device->Context(), call).ok());
  for (int64_t row = 0; row < kSteps; ++row) {
    for (int64_t i = 0; i < kFrequencies; ++i) {
      const double angle =
          values[row] * std::exp(-std::log(10000.0) * static_cast<double>(i) / kFrequencies);
      EXPECT_NEAR(output.view().Row<float>(row)[i], std::cos(angle), 1e-6);
      EXPECT_NEAR(output.view().Row<float>(row)[kFrequencies + i], std::sin(angle), 1e-6);
    }
  }
}

TEST(Accuracy, GradSumRoundsOnceAndMayOverwriteItsFirstInput) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    HostTensor a(dtype, 2, 3, 7), b(dtype, 2, 3, 7);
    Matrix expected(2, 3, 7);
    for (int64_t i = 0; i < 42; ++i) {
      const float left = 1.0f + static_cast<float>(i) / 128;
      const float right = static_cast<float>(i * i) / 64;
      if (dtype == DType::kBF16) {
        a.view().Row<bfloat16>(0)[i] = RoundToBf16(left);
        b.view().Row<bfloat16>(0)[i] = RoundToBf16(right);
        expected.values[i] = RoundThroughBf16(RoundThroughBf16(left) + RoundThroughBf16(right));
      } else {
        a.view().Row<float>(0)[i] = left;
        b.view().Row<float>(0)[i] = right;
        expected.values[i] = left + right;
      }
    }
    const Tensor inputs[] = {a.view(), b.view()};
    ForwardCall call;
    call.inputs = inputs;
    call.output = a.view();
    const Operation& operation = CandidateOperation(OpKind::kGradSum);
    ASSERT_TRUE(operation.Check(call).ok());
    const std::unique_ptr<Device> device = MakeCpuDevice(2, 1 << 20).value();
    ASSERT_TRUE(operation.Forward(device->Context(), call).ok());
    EXPECT_EQ(Matrix(a.view()).values, expected.values);
  }
}

}  // namespace
}  // namespace plumbline
