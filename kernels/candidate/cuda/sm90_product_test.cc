// The products of Hopper: the same bytes in every shape of tiles, on repeat and for any number of
// rows, and close to a product in float32.
#include "kernels/candidate/cuda/sm90_product.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/candidate/cuda/bf16_product.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/cuda/float32_product.h"
#include "kernels/cuda/sm90.h"
#include "kernels/cuda/synthetic.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

using candidate_cuda::Sm90MultiplyInShape;
using candidate_cuda::Sm90ShapeCount;
using cuda::Operand;
using cuda::SummedAxis;

// Tensors on the GPU, which live as long as this.
class Tensors {
 public:
  Tensor Make(DType dtype, int64_t rows, int64_t width) {
    Device& device = *CudaDeviceForTest();
    buffers_.push_back(device.Allocate(rows * width * DTypeSize(dtype)).value());
    return Tensor::Dense(buffers_.back().data(), dtype, 1, rows, width);
  }
  Tensor Random(DType dtype, int64_t rows, int64_t width) {
    const Tensor tensor = Make(dtype, rows, width);
    const std::string name = "product." + std::to_string(buffers_.size());
    EXPECT_TRUE(FillSyntheticOnCuda(Stream(), name, 5, {1, 0}, tensor).ok());
    return tensor;
  }
  // Scratch for the product of two operands.
  float* RunSums(const Operand& left, const Operand& right) {
    const int64_t floats = std::max<int64_t>(1, candidate_cuda::ProductRunSums(left, right));
    return Make(DType::kF32, 1, floats).Row<float>(0);
  }
  static cudaStream_t Stream() {
    return static_cast<cudaStream_t>(CudaDeviceForTest()->Context().stream);
  }

 private:
  std::vector<DeviceBuffer> buffers_;
};

HostTensor Download(const Tensor& tensor) {
  HostTensor host(tensor.dtype, 1, tensor.rows, tensor.width);
  EXPECT_TRUE(CudaDeviceForTest()->CopyToHost(tensor, host.view().data).ok());
  return host;
}

// Rows of both kinds of operand, their summed axes, and the extents of C.
struct Case {
  const char* name;
  SummedAxis left;
  SummedAxis right;
  int64_t m;
  int64_t n;
  int64_t k;
};

constexpr Case kCases[] = {
    {"Y", SummedAxis::kWidth, SummedAxis::kWidth, 925, 1352, 1096},
    {"YOfFewRows", SummedAxis::kWidth, SummedAxis::kWidth, 3, 2696, 200},
    {"Dx", SummedAxis::kWidth, SummedAxis::kRows, 925, 1352, 1096},
    {"YOfASumInRuns", SummedAxis::kWidth, SummedAxis::kWidth, 37, 264, 40000},
    {"DxOfASumInRuns", SummedAxis::kWidth, SummedAxis::kRows, 3, 2688, 49160},
    {"Dw", SummedAxis::kRows, SummedAxis::kRows, 1352, 1096, 925},
};

Tensor RandomOperand(Tensors& tensors, SummedAxis summed, int64_t extent, int64_t k) {
  return summed == SummedAxis::kWidth ? tensors.Random(DType::kBF16, extent, k)
                                      : tensors.Random(DType::kBF16, k, extent);
}

class EveryShapeOfTiles : public testing::TestWithParam<std::tuple<Case, DType>> {};

TEST_P(EveryShapeOfTiles, GivesTheSameBytes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  if (!cuda::RunsSm90Code()) GTEST_SKIP() << "no Hopper";
  const auto& [product, output_type] = GetParam();
  Tensors tensors;
  const Operand left = {RandomOperand(tensors, product.left, product.m, product.k), product.left};
  const Operand right = {RandomOperand(tensors, product.right, product.n, product.k),
                         product.right};
  const Tensor bias = tensors.Random(DType::kBF16, 1, product.n);
  ASSERT_TRUE(
      candidate_cuda::TakesSm90Product(left, right, tensors.Make(output_type, 1, product.n)));

  float* const run_sums = tensors.RunSums(left, right);
  const auto multiply = [&, type = output_type, m = product.m, n = product.n](int shape) {
    const Tensor output = tensors.Make(type, m, n);
    EXPECT_TRUE(
        Sm90MultiplyInShape(shape, Tensors::Stream(), left, right, bias, output, run_sums).ok());
    return Download(output);
  };
  const HostTensor first = multiply(0);
  for (int shape = 0; shape < Sm90ShapeCount(left, right); ++shape) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_TRUE(BitwiseEqual(first.view(), multiply(shape).view())) << "shape " << shape;
    }
  }

  const auto widen = [&](const Tensor& tensor) {
    const Tensor wide = tensors.Make(DType::kF32, tensor.rows, tensor.width);
    EXPECT_TRUE(CudaDeviceForTest()->Convert(CudaDeviceForTest()->Context(), tensor, wide).ok());
    return wide;
  };
  const Tensor expected = tensors.Make(DType::kF32, product.m, product.n);
  ASSERT_TRUE(cuda::MultiplyFloat32(Tensors::Stream(), {widen(left.tensor), left.summed},
                                    {widen(right.tensor), right.summed}, widen(bias), expected)
                  .ok());
  EXPECT_LE(RelativeL2(Download(expected).view(), first.view()), 2e-3);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Case, DType>>& info) {
  const auto& [product, output_type] = info.param;
  return std::string(product.name) + (output_type == DType::kF32 ? "Float32" : "Bfloat16");
}

INSTANTIATE_TEST_SUITE_P(Sm90Product, EveryShapeOfTiles,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(DType::kBF16, DType::kF32)),
                         NameOf);

void ExpectRowsAlone(int64_t outputs, int64_t inputs) {
  constexpr int64_t kRows = 3160;
  Tensors tensors;
  const Tensor x = tensors.Random(DType::kBF16, kRows, inputs);
  const Operand weight = {tensors.Random(DType::kBF16, outputs, inputs), SummedAxis::kWidth};
  const auto multiply = [&](int64_t first, int64_t rows) {
    Tensor part = x;
    part.data = x.Row<uint16_t>(first);
    part.rows = rows;
    part.batch_stride = rows * inputs;
    const Operand left = {part, SummedAxis::kWidth};
    const Tensor output = tensors.Make(DType::kBF16, rows, outputs);
    EXPECT_TRUE(candidate_cuda::Sm90Multiply(Tensors::Stream(), left, weight, Tensor(), output,
                                             tensors.RunSums(left, weight))
                    .ok());
    return Download(output);
  };
  const HostTensor all = multiply(0, kRows);
  for (const std::pair<int64_t, int64_t>& part :
       {std::pair<int64_t, int64_t>{0, 1}, {7, 2}, {100, 37}, {0, 264}, {1234, 925}}) {
    Tensor expected = all.view();
    expected.data = all.view().Row<uint16_t>(part.first);
    expected.rows = part.second;
    EXPECT_TRUE(BitwiseEqual(expected, multiply(part.first, part.second).view()))
        << part.second << " rows from " << part.first << " of " << inputs << " inputs";
  }
}

TEST(Sm90Product, RowsDoNotDependOnHowManyThereAre) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  if (!cuda::RunsSm90Code()) GTEST_SKIP() << "no Hopper";
  ExpectRowsAlone(5376, 2688);
  ExpectRowsAlone(264, 40000);
}

}  // namespace
}  // namespace plumbline
