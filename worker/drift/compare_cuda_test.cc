// Comparison on a GPU against the CPU's, over types, shapes, strides and values that are not
// finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/testing/block_capture.h"
#include "worker/drift/compare.h"
#include "worker/drift/equality.h"

namespace plumbline::drift {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF32, DType::kF64};
// Of float64 sums over at most some millions of values in two orders.
constexpr double kSumTolerance = 1e-12;

ThreadPool& Pool() {
  static ThreadPool pool(2);
  return pool;
}

HostTensor Converted(const HostTensor& from, DType dtype) {
  HostTensor result(dtype, from.view().batch, from.view().rows, from.view().width);
  EXPECT_TRUE(ConvertTensor(from.view(), result.view(), Pool()).ok());
  return result;
}

// Values of many magnitudes.
HostTensor RandomTensor(int64_t batch, int64_t rows, int64_t width, std::mt19937_64* random) {
  HostTensor result(DType::kF64, batch, rows, width);
  std::normal_distribution<double> normal;
  double* const values = result.view().Row<double>(0);
  for (int64_t i = 0; i < batch * rows * width; ++i) {
    values[i] = normal(*random) * std::ldexp(1.0, static_cast<int>((*random)() % 12) - 6);
  }
  return result;
}

// The reference and something near it, some of it equal.
HostTensor Near(const HostTensor& reference, std::mt19937_64* random) {
  const Tensor& view = reference.view();
  HostTensor result(DType::kF64, view.batch, view.rows, view.width);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < view.NumElements(); ++i) {
    const double value = view.Row<double>(0)[i];
    result.view().Row<double>(0)[i] =
        (*random)() % 4 == 0 ? value : value * (1 + 0.01 * normal(*random));
  }
  return result;
}

void ExpectSame(double expected, double actual, double tolerance, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what;
  } else {
    EXPECT_LE(std::fabs(actual - expected), tolerance * std::fabs(expected))
        << what << ": " << actual << ", " << expected << " on the CPU";
  }
}

void ExpectSame(const v1::TensorComparison& expected, const v1::TensorComparison& actual,
                const std::string& what) {
  EXPECT_EQ(expected.bitwise_equal(), actual.bitwise_equal()) << what;
  EXPECT_EQ(expected.differing_elements(), actual.differing_elements()) << what;
  EXPECT_EQ(expected.first_differing_row().SerializeAsString(),
            actual.first_differing_row().SerializeAsString())
      << what;
  EXPECT_EQ(expected.nonfinite().SerializeAsString(), actual.nonfinite().SerializeAsString())
      << what;
  EXPECT_EQ(expected.zero_reference(), actual.zero_reference()) << what;
  ExpectSame(expected.max_abs(), actual.max_abs(), 0, what + " max_abs");
  ExpectSame(expected.max_u(), actual.max_u(), 0, what + " max_u");
  ExpectSame(expected.abs_diff().p50(), actual.abs_diff().p50(), 0, what + " p50");
  ExpectSame(expected.abs_diff().p90(), actual.abs_diff().p90(), 0, what + " p90");
  ExpectSame(expected.abs_diff().p99(), actual.abs_diff().p99(), 0, what + " p99");
  ExpectSame(expected.abs_diff().p99_9(), actual.abs_diff().p99_9(), 0, what + " p99.9");
  ExpectSame(expected.relative_l2(), actual.relative_l2(), kSumTolerance, what + " relative_l2");
  ExpectSame(expected.cosine(), actual.cosine(), kSumTolerance, what + " cosine");
  if (std::isfinite(expected.norm()) && std::isfinite(expected.reference_norm())) {
    ExpectSame(expected.norm(), actual.norm(), kSumTolerance, what + " norm");
    ExpectSame(expected.reference_norm(), actual.reference_norm(), kSumTolerance,
               what + " reference_norm");
  }
}

// Compares both ways; `view` takes a part of each side.
template <typename View>
v1::TensorComparison CompareBoth(const HostTensor& reference, const HostTensor& x, View view,
                                 const std::string& what) {
  Device& device = *CudaDeviceForTest();
  const CudaTensor device_reference = CudaTensor::Upload(device, reference.view()).value();
  const CudaTensor device_x = CudaTensor::Upload(device, x.view()).value();
  const auto compared = [&](const Tensor& tensor) {
    const Tensor part = view(tensor);
    return ComparedTensor{part, {part.batch, part.rows, part.width}, "digest"};
  };
  const v1::TensorComparison expected = CompareTensors("reference", compared(reference.view()), "x",
                                                       compared(x.view()), NameOtherRow, Pool());
  const absl::StatusOr<v1::TensorComparison> actual =
      CompareOnDevice(device, "reference", compared(device_reference.view()), "x",
                      compared(device_x.view()), NameOtherRow, Pool());
  EXPECT_TRUE(actual.ok()) << actual.status();
  if (actual.ok()) ExpectSame(expected, *actual, what);
  return expected;
}

constexpr auto kWhole = [](const Tensor& tensor) { return tensor; };

TEST(CompareCuda, GivesTheCpusMeasuresOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  std::mt19937_64 random(1);
  struct {
    int64_t batch, rows, width;
  } const shapes[] = {{1, 1, 1},    {1, 1, 7},    {1, 1, 5376},
                      {1, 37, 129}, {2, 33, 256}, {1, 264, 5376}};
  for (const auto& shape : shapes) {
    const HostTensor wide = RandomTensor(shape.batch, shape.rows, shape.width, &random);
    const HostTensor near = Near(wide, &random);
    for (DType reference_type : kTypes) {
      for (DType type : kTypes) {
        const std::string what =
            absl::StrCat(DTypeName(reference_type), " and ", DTypeName(type), ", ", shape.batch,
                         " x ", shape.rows, " x ", shape.width);
        CompareBoth(Converted(wide, reference_type), Converted(near, type), kWhole, what);
        CompareBoth(Converted(wide, reference_type), Converted(wide, type), kWhole,
                    what + ", equal");
      }
    }
  }
}

TEST(CompareCuda, GivesTheCpusMeasuresOfViewsOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  std::mt19937_64 random(2);
  const HostTensor wide = RandomTensor(2, 41, 384, &random);
  const HostTensor reference = Converted(wide, DType::kF32);
  const HostTensor x = Converted(Near(wide, &random), DType::kBF16);
  CompareBoth(
      reference, x, [](const Tensor& whole) { return whole.Columns(3, 200); }, "columns");
  CompareBoth(
      reference, x, [](const Tensor& whole) { return whole.Columns(128, 128); }, "aligned columns");
  CompareBoth(
      reference, x,
      [](Tensor whole) {
        whole.data = static_cast<char*>(whole.data) +
                     40 * whole.row_stride * static_cast<int64_t>(DTypeSize(whole.dtype));
        whole.row_stride *= -2;
        whole.rows = 20;
        return whole;
      },
      "rows from last to first");
}

TEST(CompareCuda, GivesTheCpusMeasuresOfMillionsOfValues) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  std::mt19937_64 random(3);
  const HostTensor wide = RandomTensor(1, 700, 5376, &random);
  const HostTensor near = Near(wide, &random);
  CompareBoth(Converted(wide, DType::kF32), Converted(near, DType::kBF16), kWhole, "float32");
  CompareBoth(Converted(wide, DType::kBF16), Converted(near, DType::kBF16), kWhole, "bfloat16");
}

TEST(CompareCuda, CountsValuesThatAreNotFiniteOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  std::mt19937_64 random(4);
  for (const double special :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    HostTensor reference = RandomTensor(1, 19, 77, &random);
    HostTensor x = Near(reference, &random);
    x.view().Row<double>(3)[5] = special;
    x.view().Row<double>(18)[76] = special;
    const v1::TensorComparison found =
        CompareBoth(Converted(reference, DType::kF32), Converted(x, DType::kF32), kWhole, "in x");
    EXPECT_EQ(found.nonfinite().nan() + found.nonfinite().infinity(), 2);
    CompareBoth(Converted(x, DType::kF32), Converted(reference, DType::kBF16), kWhole,
                "in the reference");
  }
  HostTensor zero = RandomTensor(1, 5, 40, &random);
  for (int64_t i = 0; i < 200; ++i) zero.view().Row<double>(0)[i] = i % 2 == 0 ? 0.0 : -0.0;
  CompareBoth(Converted(zero, DType::kF32), Converted(Near(zero, &random), DType::kF32), kWhole,
              "zeros");
}

TEST(CompareCuda, IsTheSameEachTime) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  std::mt19937_64 random(5);
  const HostTensor wide = RandomTensor(1, 333, 1000, &random);
  const CudaTensor reference =
      CudaTensor::Upload(device, Converted(wide, DType::kF32).view()).value();
  const CudaTensor x =
      CudaTensor::Upload(device, Converted(Near(wide, &random), DType::kBF16).view()).value();
  const auto compare = [&] {
    return CompareOnDevice(device, "a", {reference.view(), {333, 1000}, ""}, "b",
                           {x.view(), {333, 1000}, ""}, NameOtherRow, Pool())
        .value()
        .SerializeAsString();
  };
  const std::string first = compare();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(compare(), first);
}

TEST(CompareCuda, FindsTheFirstDifferenceOfTwoExecutionsOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  std::mt19937_64 random(6);
  const HostTensor first = Converted(RandomTensor(1, 50, 90, &random), DType::kBF16);
  HostTensor other = Converted(first, DType::kBF16);
  const CudaTensor device_first = CudaTensor::Upload(device, first.view()).value();
  const auto both = [&] {
    const CudaTensor device_other = CudaTensor::Upload(device, other.view()).value();
    v1::EqualityCheck expected, actual;
    AddExecution(first.view(), other.view(), "again", NameOtherRow, &expected);
    EXPECT_TRUE(AddExecutionOnDevice(device, device_first.view(), device_other.view(), "again",
                                     NameOtherRow, &actual)
                    .ok());
    EXPECT_EQ(expected.SerializeAsString(), actual.SerializeAsString());
    return actual;
  };
  EXPECT_EQ(both().result(), v1::EQUALITY_EQUAL);
  other.view().Row<uint16_t>(31)[7] ^= 1;
  other.view().Row<uint16_t>(44)[2] ^= 1;
  const v1::EqualityCheck different = both();
  EXPECT_EQ(different.result(), v1::EQUALITY_DIFFERENT);
  EXPECT_EQ(different.first_differing_row().row(), 31);
  EXPECT_EQ(different.first_differing_column(), 7);
}

TEST(CompareCuda, RefusesIntegers) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  const Tensor integers = Tensor::Dense(nullptr, DType::kI64, 1, 1, 4);
  EXPECT_EQ(device.Difference(integers, integers, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const Tensor floats = Tensor::Dense(nullptr, DType::kF32, 1, 1, 4);
  const Tensor fewer = Tensor::Dense(nullptr, DType::kF32, 1, 1, 3);
  EXPECT_EQ(device.Difference(floats, fewer, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device.Difference(floats, floats, {4}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline::drift
