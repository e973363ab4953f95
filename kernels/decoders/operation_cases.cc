// Against the definitions of PyTorch's modules, written out in float64: padding, transposed
// convolution and cutting as PyTorch does them.
#include "kernels/decoders/operation_cases.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace plumbline {

using ::testing::HasSubstr;

namespace {

constexpr uint32_t kSeed = 20;

// The memory from a tensor's first value to its last, gaps included.
Tensor SpanOf(const Tensor& tensor) {
  const int64_t values = (tensor.batch - 1) * tensor.batch_stride +
                         (tensor.rows - 1) * tensor.row_stride + tensor.width;
  return Tensor::Dense(tensor.data, DType::kU8, 1, 1,
                       values * static_cast<int64_t>(DTypeSize(tensor.dtype)));
}

// Copies of host tensors on a device, with the same strides.
class OnDevice {
 public:
  explicit OnDevice(Device& device) : device_(device) {}

  Tensor Copy(const Tensor& host) {
    const Tensor from = SpanOf(host);
    memory_.push_back(device_.Allocate(from.NumBytes()).value());
    Tensor copy = host;
    copy.data = memory_.back().data();
    EXPECT_TRUE(device_.CopyToDevice(from.data, SpanOf(copy)).ok());
    return copy;
  }
  std::vector<Tensor> Copy(absl::Span<const Tensor> hosts) {
    std::vector<Tensor> copies;
    for (const Tensor& host : hosts) copies.push_back(Copy(host));
    return copies;
  }
  absl::Span<uint8_t> Workspace(size_t bytes) {
    memory_.push_back(device_.Allocate(bytes).value());
    return absl::MakeSpan(static_cast<uint8_t*>(memory_.back().data()), bytes);
  }

 private:
  Device& device_;
  std::vector<DeviceBuffer> memory_;
};

}  // namespace

DecoderOperationsTest::DecoderOperationsTest() : random_(kSeed), device_(GetParam().device()) {
  RecordProperty("seed", static_cast<int>(kSeed));
}

void DecoderOperationsTest::Run(OpKind op, const ForwardCall& call) {
  const Operation& operation = Find(op);
  ASSERT_TRUE(operation.Check(call).ok()) << operation.Check(call);
  OnDevice there(*device_);
  const std::vector<Tensor> inputs = there.Copy(call.inputs);
  const std::vector<Tensor> parameters = there.Copy(call.parameters);
  ForwardCall copied = call;
  copied.inputs = inputs;
  copied.parameters = parameters;
  copied.output = there.Copy(call.output);
  ExecutionContext context = device_->Context();
  context.workspace = there.Workspace(operation.ForwardWorkspaceBytes(copied, context));
  const absl::Status done = operation.Forward(context, copied);
  ASSERT_TRUE(done.ok()) << done;
  ASSERT_TRUE(device_->CopyToHost(SpanOf(copied.output), call.output.data).ok());
}

void DecoderOperationsTest::Expect(OpKind op, const std::vector<const Values*>& inputs,
                                   const std::vector<const Values*>& parameters,
                                   const Attributes& attributes, Values* output,
                                   const ExpectedValue& expected) {
  std::vector<Tensor> input_views, parameter_views;
  for (const Values* each : inputs) input_views.push_back(each->view());
  for (const Values* each : parameters) parameter_views.push_back(each->view());
  ForwardCall call;
  call.inputs = input_views;
  call.parameters = parameter_views;
  call.attributes = attributes;
  call.output = output->view();
  Run(op, call);
  const Tensor& view = output->view();
  for (int64_t item = 0; item < view.batch; ++item) {
    for (int64_t row = 0; row < view.rows; ++row) {
      for (int64_t i = 0; i < view.width; ++i) {
        const double value = expected(item, row, i);
        ASSERT_NEAR(output->At(item, row, i), value, GetParam().tolerance * (1 + std::fabs(value)))
            << OpName(op) << " at " << item << ", " << row << ", " << i << " of " << view.batch
            << ", " << view.rows << ", " << view.width;
      }
    }
  }
}

TEST_P(DecoderOperationsTest, Conv1d) {
  for (const int64_t length : {1, 2, 7, 130}) {
    for (const int64_t taps : {1, 3, 7}) {
      for (const int64_t dilation : {1, 3}) {
        for (const bool normalised : {false, true}) {
          for (const bool has_bias : {false, true}) {
            const int64_t in = 5, out = 3;
            Values x(2, length, in, 1), weight(1, out, in * taps), gain(1, out, 1), bias(1, 1, out),
                y(2, length, out, 2);
            x.Fill(&random_);
            weight.Fill(&random_);
            gain.Fill(&random_);
            bias.Fill(&random_);
            Attributes attributes;
            attributes.dilation = dilation;
            attributes.weight_norm = normalised;
            std::vector<const Values*> parameters = {&weight};
            if (normalised) parameters.push_back(&gain);
            if (has_bias) parameters.push_back(&bias);
            Expect(OpKind::kConv1d, {&x}, parameters, attributes, &y,
                   [&](int64_t item, int64_t t, int64_t n) {
                     double norm = 0;
                     for (int64_t i = 0; i < in * taps; ++i)
                       norm += std::pow(weight.At(0, n, i), 2);
                     const double factor = normalised ? gain.At(0, n, 0) / std::sqrt(norm) : 1;
                     double sum = has_bias ? bias.At(0, 0, n) : 0;
                     for (int64_t c = 0; c < in; ++c) {
                       for (int64_t k = 0; k < taps; ++k) {
                         const int64_t from = t + k * dilation - dilation * (taps - 1) / 2;
                         if (from < 0 || from >= length) continue;
                         sum += factor * weight.At(0, n, c * taps + k) * x.At(item, from, c);
                       }
                     }
                     return sum;
                   });
          }
        }
      }
    }
  }
}

TEST_P(DecoderOperationsTest, ConvTranspose1d) {
  for (const int64_t length : {1, 2, 9, 70}) {
    for (const auto& [stride, taps] : {std::pair<int64_t, int64_t>{5, 9}, {2, 4}, {3, 3}, {2, 8}}) {
      const int64_t in = 4, out = 3, padding = (taps - stride) / 2;
      Values x(2, length, in, 1), weight(1, in, out * taps), gain(1, in, 1), bias(1, 1, out),
          y(2, length * stride, out, 1);
      x.Fill(&random_);
      weight.Fill(&random_);
      gain.Fill(&random_);
      bias.Fill(&random_);
      Attributes attributes;
      attributes.stride = stride;
      // What every input adds, scattered over the whole result and then cut.
      const int64_t whole = (length - 1) * stride + taps;
      std::vector<double> scattered(static_cast<size_t>(2 * whole * out), 0.0);
      for (int64_t item = 0; item < 2; ++item) {
        for (int64_t c = 0; c < in; ++c) {
          double norm = 0;
          for (int64_t i = 0; i < out * taps; ++i) norm += std::pow(weight.At(0, c, i), 2);
          const double factor = gain.At(0, c, 0) / std::sqrt(norm);
          for (int64_t s = 0; s < length; ++s) {
            for (int64_t n = 0; n < out; ++n) {
              for (int64_t k = 0; k < taps; ++k) {
                scattered[static_cast<size_t>((item * whole + s * stride + k) * out + n)] +=
                    x.At(item, s, c) * weight.At(0, c, n * taps + k) * factor;
              }
            }
          }
        }
      }
      Expect(OpKind::kConvTranspose1d, {&x}, {&weight, &gain, &bias}, attributes, &y,
             [&](int64_t item, int64_t t, int64_t n) {
               return bias.At(0, 0, n) +
                      scattered[static_cast<size_t>((item * whole + t + padding) * out + n)];
             });
    }
  }
}

// Padded, transposed-convolved, doubled and cut; activated; padded and convolved with a stride.
TEST_P(DecoderOperationsTest, SnakeBeta) {
  for (const int64_t length : {1, 2, 5, 6, 65, 130}) {
    for (const int64_t taps : {12, 4}) {
      const int64_t channels = 3;
      Values x(2, length, channels, 1), alpha(1, 1, channels), beta(1, 1, channels), up(1, 1, taps),
          down(1, 1, taps), y(2, length, channels, 2);
      for (Values* each : {&x, &alpha, &beta, &up, &down}) each->Fill(&random_);
      const int64_t pad = taps / 2 - 1;
      const int64_t left = pad * 2 + (taps - 2) / 2;
      std::vector<double> result(static_cast<size_t>(2 * length * channels));
      for (int64_t item = 0; item < 2; ++item) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t padded = length + 2 * pad;
          std::vector<double> whole(static_cast<size_t>((padded - 1) * 2 + taps), 0.0);
          for (int64_t i = 0; i < padded; ++i) {
            const double value = x.At(item, std::clamp<int64_t>(i - pad, 0, length - 1), c);
            for (int64_t k = 0; k < taps; ++k)
              whole[static_cast<size_t>(2 * i + k)] += value * up.At(0, 0, k);
          }
          std::vector<double> activated;
          for (int64_t j = 0; j < 2 * length; ++j) {
            const double u = 2 * whole[static_cast<size_t>(left + j)];
            const double sine = std::sin(std::exp(alpha.At(0, 0, c)) * u);
            activated.push_back(u + sine * sine / (std::exp(beta.At(0, 0, c)) + 1e-9));
          }
          for (int64_t t = 0; t < length; ++t) {
            double sum = 0;
            for (int64_t k = 0; k < taps; ++k) {
              const int64_t j = std::clamp<int64_t>(2 * t + k - (taps / 2 - 1), 0, 2 * length - 1);
              sum += activated[static_cast<size_t>(j)] * down.At(0, 0, k);
            }
            result[static_cast<size_t>((item * length + t) * channels + c)] = sum;
          }
        }
      }
      Expect(OpKind::kSnakeBeta, {&x}, {&alpha, &beta, &up, &down}, {}, &y,
             [&](int64_t item, int64_t t, int64_t c) {
               return result[static_cast<size_t>((item * length + t) * channels + c)];
             });
    }
  }
}

TEST_P(DecoderOperationsTest, NormsAndElementwise) {
  const int64_t rows = 19, width = 24;
  Values x(2, rows, width, 1), branch(2, rows, width, 3), weight(1, 1, width), bias(1, 1, width),
      y(2, rows, width, 2);
  for (Values* each : {&x, &branch, &weight, &bias}) each->Fill(&random_, 2);
  Attributes attributes;
  attributes.epsilon = 1e-2f;  // Large enough that leaving it out would show.
  attributes.head_width = 8;
  const auto rms = [&](int64_t item, int64_t row, int64_t first, int64_t size) {
    double sum = 0;
    for (int64_t i = first; i < first + size; ++i) sum += std::pow(x.At(item, row, i), 2);
    return std::sqrt(sum / static_cast<double>(size) + static_cast<double>(1e-2f));
  };
  Expect(OpKind::kDecoderRmsNorm, {&x}, {&weight}, attributes, &y,
         [&](int64_t item, int64_t row, int64_t i) {
           return x.At(item, row, i) / rms(item, row, 0, width) * weight.At(0, 0, i);
         });
  Expect(OpKind::kDecoderHeadNorm, {&x}, {}, attributes, &y,
         [&](int64_t item, int64_t row, int64_t i) {
           return x.At(item, row, i) / rms(item, row, i / 8 * 8, 8);
         });
  Expect(OpKind::kDecoderLayerNorm, {&x}, {&weight, &bias}, attributes, &y,
         [&](int64_t item, int64_t row, int64_t i) {
           double mean = 0, variance = 0;
           for (int64_t j = 0; j < width; ++j) mean += x.At(item, row, j) / width;
           for (int64_t j = 0; j < width; ++j)
             variance += std::pow(x.At(item, row, j) - mean, 2) / width;
           return (x.At(item, row, i) - mean) / std::sqrt(variance + static_cast<double>(1e-2f)) *
                      weight.At(0, 0, i) +
                  bias.At(0, 0, i);
         });
  Expect(OpKind::kDecoderResidual, {&x, &branch}, {&weight}, {}, &y,
         [&](int64_t item, int64_t row, int64_t i) {
           return x.At(item, row, i) + branch.At(item, row, i) * weight.At(0, 0, i);
         });
  Expect(OpKind::kDecoderResidual, {&x, &branch}, {}, {}, &y,
         [&](int64_t item, int64_t row, int64_t i) {
           return x.At(item, row, i) + branch.At(item, row, i);
         });
  Expect(OpKind::kMean, {&x, &branch, &x}, {}, {}, &y, [&](int64_t item, int64_t row, int64_t i) {
    return (2 * x.At(item, row, i) + branch.At(item, row, i)) / 3;
  });
  Values half(2, rows, width / 2, 1);
  Expect(OpKind::kDecoderSwiGlu, {&x}, {}, {}, &half, [&](int64_t item, int64_t row, int64_t i) {
    const double gate = x.At(item, row, width / 2 + i);
    return x.At(item, row, i) * gate / (1 + std::exp(-gate));
  });
  Values tokens(1, 1, 2 * width), appended(2, rows + 3, width, 1);
  tokens.Fill(&random_);
  Expect(OpKind::kAppendTokens, {&x}, {&tokens}, {}, &appended,
         [&](int64_t item, int64_t row, int64_t i) {
           if (row < rows) return x.At(item, row, i);
           return row < rows + 2 ? tokens.At(0, 0, (row - rows) * width + i) : 0.0;
         });
}

TEST_P(DecoderOperationsTest, Attention) {
  for (const int64_t rows : {1, 47, 48, 101}) {
    const int64_t width = 32, head = 16;
    Values q(2, rows, width, 1), k(2, rows, width, 2), v(2, rows, width, 3), y(2, rows, width, 1);
    for (Values* each : {&q, &k, &v}) each->Fill(&random_, 2);
    Attributes attributes;
    attributes.head_width = head;
    Expect(OpKind::kDecoderAttention, {&q, &k, &v}, {}, attributes, &y,
           [&](int64_t item, int64_t row, int64_t i) {
             const int64_t first = i / head * head;
             double weights = 0, sum = 0;
             for (int64_t key = 0; key < rows; ++key) {
               double score = 0;
               for (int64_t c = first; c < first + head; ++c)
                 score += q.At(item, row, c) * k.At(item, key, c);
               const double weight = std::exp(score / 4);
               weights += weight;
               sum += weight * v.At(item, key, i);
             }
             return sum / weights;
           });
  }
}

// 8 frequencies on each of three axes over the first 48 of 64 channels.
TEST_P(DecoderOperationsTest, Rope) {
  const int64_t rows = 17, head = 64, width = 2 * head, frequencies = 8, half = 24;
  Values x(2, rows, width, 1), y(2, rows, width, 1);
  x.Fill(&random_);
  std::vector<double> positions(static_cast<size_t>(rows * 3));
  std::uniform_real_distribution<double> distribution(-6.3, 6.3);
  for (double& position : positions) position = static_cast<float>(distribution(random_));
  const Tensor inputs[] = {x.view(), Tensor::Dense(positions.data(), DType::kF64, 1, rows, 3)};
  ForwardCall call;
  call.inputs = inputs;
  call.attributes.head_width = head;
  call.attributes.rotary_frequencies = frequencies;
  call.attributes.rotary_theta = 100;
  call.output = y.view();
  Run(OpKind::kDecoderRope, call);
  for (int64_t item = 0; item < 2; ++item) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t c = i % head, first = i - c;
        double expected = x.At(item, row, i);
        if (c < 2 * half) {
          const int64_t a = c % half;
          const double angle = positions[static_cast<size_t>(row * 3 + a / frequencies)] /
                               std::pow(100.0, static_cast<double>(a % frequencies) / frequencies);
          const double other =
              c < half ? -x.At(item, row, first + half + a) : x.At(item, row, first + a);
          expected = expected * std::cos(angle) + other * std::sin(angle);
        }
        ASSERT_NEAR(y.At(item, row, i), expected, std::max(2e-6, GetParam().tolerance))
            << item << ", " << row << ", " << i;
      }
    }
  }
}

// A result's bytes depend on what it reads, not on what else is in the call.
TEST_P(DecoderOperationsTest, OtherRowsAndItemsChangeNothing) {
  if (!GetParam().is_invariant) {
    GTEST_SKIP() << GetParam().implementation << " picks its kernels by the shape";
  }
  const int64_t channels = 6;
  Values long_x(3, 200, channels), weight(1, channels, channels * 7), gain(1, channels, 1),
      bias(1, 1, channels), long_y(3, 200, channels), short_y(1, 120, channels);
  for (Values* each : {&long_x, &weight, &gain, &bias}) each->Fill(&random_);
  const std::vector<Tensor> parameters = {weight.view(), gain.view(), bias.view()};
  ForwardCall call;
  call.parameters = parameters;
  call.attributes.weight_norm = true;
  const Tensor all[] = {long_x.view()};
  call.inputs = all;
  call.output = long_y.view();
  Run(OpKind::kConv1d, call);
  Tensor part = long_x.view();
  part.data = part.Row<float>(40, 1);
  part.batch = 1;
  part.rows = 120;
  const Tensor alone[] = {part};
  call.inputs = alone;
  call.output = short_y.view();
  Run(OpKind::kConv1d, call);
  for (int64_t row = 3; row < 117; ++row) {
    for (int64_t i = 0; i < channels; ++i)
      ASSERT_EQ(short_y.At(0, row, i), long_y.At(1, 40 + row, i)) << row;
  }
}

TEST_P(DecoderOperationsTest, RefusesShapesThatDoNotFit) {
  Values x(1, 4, 6), y(1, 4, 3), weight(1, 3, 6 * 2), odd(1, 1, 3);
  const Tensor inputs[] = {x.view()};
  const Tensor parameters[] = {weight.view()};
  ForwardCall call;
  call.inputs = inputs;
  call.parameters = parameters;
  call.output = y.view();
  EXPECT_THAT(Find(OpKind::kConv1d).Check(call).message(), HasSubstr("odd number of taps"));
  const Tensor filters[] = {odd.view(), odd.view(), odd.view(), odd.view()};
  call.parameters = filters;
  EXPECT_EQ(Find(OpKind::kSnakeBeta).Check(call).code(), absl::StatusCode::kInvalidArgument);
  call.parameters = {};
  EXPECT_THAT(Find(OpKind::kSnakeBeta).Check(call).message(), HasSubstr("parameters"));
  call.attributes.head_width = 4;
  call.output = x.view();
  EXPECT_THAT(Find(OpKind::kDecoderHeadNorm).Check(call).message(), HasSubstr("head_width"));
}

}  // namespace plumbline
