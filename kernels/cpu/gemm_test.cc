#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline {
namespace {

// A matrix of random values, stored as float or bfloat16, by rows or by columns, with a gap after
// each line.
struct Matrix {
  std::vector<float> values;  // (rows, columns), exact
  std::vector<float> floats;
  std::vector<bfloat16> halves;
  GemmOperand operand;

  Matrix(int64_t rows, int64_t columns, bool by_columns, DType dtype, std::mt19937& random) {
    std::normal_distribution<float> normal;
    const int64_t stride = (by_columns ? rows : columns) + 3;
    const size_t size = static_cast<size_t>((by_columns ? columns : rows) * stride);
    floats.resize(size);
    halves.resize(size);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const float value = RoundThroughBf16(normal(random));
        const int64_t place = by_columns ? j * stride + i : i * stride + j;
        values.push_back(value);
        floats[static_cast<size_t>(place)] = value;
        halves[static_cast<size_t>(place)] = RoundToBf16(value);
      }
    }
    operand.dtype = dtype;
    operand.data = dtype == DType::kF32 ? static_cast<const void*>(floats.data()) : halves.data();
    operand.row_stride = by_columns ? 1 : stride;
    operand.column_stride = by_columns ? stride : 1;
  }
};

// The documented order, written plainly.
template <typename T>
T ElementByDefinition(const Matrix& a, const Matrix& b, const GemmShape& shape, int64_t row,
                      int64_t column) {
  T total = 0;
  for (int64_t first = 0; first < shape.k; first += kGemmBlock) {
    T sum = 0;
    for (int64_t k = first; k < std::min(shape.k, first + kGemmBlock); ++k) {
      sum = std::fma(T{a.values[static_cast<size_t>(row * shape.k + k)]},
                     T{b.values[static_cast<size_t>(k * shape.n + column)]}, sum);
    }
    total = first == 0 ? sum : total + sum;
  }
  return total;
}

template <typename T>
std::vector<T> Multiply(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
                        int threads) {
  ThreadPool pool(threads);
  const size_t bytes = GemmWorkspaceBytes<T>(threads);
  std::unique_ptr<void, decltype(&std::free)> workspace(std::aligned_alloc(64, bytes), &std::free);
  // Whatever the workspace held before must not matter.
  std::fill_n(static_cast<uint8_t*>(workspace.get()), bytes, uint8_t{0xFF});
  std::vector<T> c(static_cast<size_t>(shape.m * shape.n), T{-12345});
  Gemm<T>(
      shape, a, b,
      [&](int64_t row, int64_t column, int64_t count, const T* values) {
        std::copy_n(values, count, c.begin() + row * shape.n + column);
      },
      absl::MakeSpan(static_cast<uint8_t*>(workspace.get()), bytes), pool);
  return c;
}

template <typename T>
void ExpectDocumentedOrder() {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::vector<GemmShape> shapes = {{1, 1, 1},       {3, 50, 64},   {5, 17, 255},
                                         {7, 16, 256},    {53, 33, 257}, {97, 193, 70},
                                         {100, 200, 600}, {6, 4, 0}};
  for (const GemmShape& shape : shapes) {
    for (const bool a_by_columns : {false, true}) {
      for (const bool b_by_columns : {false, true}) {
        const DType a_type = random() % 2 == 0 ? DType::kF32 : DType::kBF16;
        const DType b_type = random() % 2 == 0 ? DType::kF32 : DType::kBF16;
        const Matrix a(shape.m, shape.k, a_by_columns, a_type, random);
        const Matrix b(shape.k, shape.n, b_by_columns, b_type, random);
        const std::vector<T> one = Multiply<T>(shape, a.operand, b.operand, 1);
        for (int64_t i = 0; i < shape.m; ++i) {
          for (int64_t j = 0; j < shape.n; ++j) {
            ASSERT_EQ(one[static_cast<size_t>(i * shape.n + j)],
                      ElementByDefinition<T>(a, b, shape, i, j))
                << "m " << shape.m << " n " << shape.n << " k " << shape.k << " at " << i << ", "
                << j;
          }
        }
        EXPECT_EQ(one, Multiply<T>(shape, a.operand, b.operand, 2));
        EXPECT_EQ(one, Multiply<T>(shape, a.operand, b.operand, 8));
      }
    }
  }
}

TEST(Gemm, FloatFollowsTheDocumentedOrder) { ExpectDocumentedOrder<float>(); }
TEST(Gemm, DoubleFollowsTheDocumentedOrder) { ExpectDocumentedOrder<double>(); }

TEST(Gemm, OperandsAreTensorsAndTheirTransposes) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Tensor tensor = Tensor::Dense(values.data(), DType::kF32, 2, 2, 3);
  // Item 1 is [[7, 8, 9], [10, 11, 12]]; times its own transpose.
  const GemmOperand item = GemmOperand::Of(tensor, 1);
  const std::vector<float> c = Multiply<float>({2, 2, 3}, item, item.Transposed(), 1);
  EXPECT_EQ(c, (std::vector<float>{194, 266, 266, 365}));
}

TEST(Gemm, DoubleOperandsKeepTheirBits) {
  const std::vector<double> a = {1.0 + 0x1p-50, 1.0};
  const std::vector<double> b = {1.0, 0x1p-51};
  const GemmOperand row{a.data(), DType::kF64, 2, 1};
  const GemmOperand column{b.data(), DType::kF64, 1, 1};
  EXPECT_EQ(Multiply<double>({1, 1, 2}, row, column, 1)[0], 1.0 + 0x1p-50 + 0x1p-51);
}

}  // namespace
}  // namespace plumbline
