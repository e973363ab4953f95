#include "worker/drift/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/sha256.h"
#include "kernels/numerics/bfloat16.h"
#include "worker/drift/equality.h"

namespace plumbline::drift {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

ComparedTensor Floats(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  return AsComparedTensor(values.data(), DType::kF32, shape);
}

v1::TensorComparison Compare(const ComparedTensor& reference, const ComparedTensor& x,
                             int threads = 1) {
  ThreadPool pool(threads);
  return CompareTensors("golden", reference, "candidate", x, NameOtherRow, pool);
}

std::vector<bfloat16> Rounded(const std::vector<float>& values) {
  std::vector<bfloat16> result(values.size());
  RoundToBf16(values, result.data());
  return result;
}

TEST(CompareTensors, GivesEveryMeasureOfValuesWorkedOutByHand) {
  // Differences 0, 0, 1, 0, -2, 0: squares sum to 5; ||ref||^2 = 1 + 4 + 9 + 16 + 25 + 36 = 91.
  const std::vector<float> reference = {1, 2, 3, 4, 5, 6};
  const std::vector<float> x = {1, 2, 2, 4, 7, 6};
  const v1::TensorComparison c = Compare(Floats(reference, {3, 2}), Floats(x, {3, 2}));
  EXPECT_EQ(c.reference(), "golden");
  EXPECT_EQ(c.subject(), "candidate");
  EXPECT_EQ(c.incomparable(), "");
  EXPECT_EQ(c.dtype(), "F32");
  EXPECT_FALSE(c.bitwise_equal());
  EXPECT_EQ(c.differing_elements(), 2);
  EXPECT_DOUBLE_EQ(c.relative_l2(), std::sqrt(5.0 / 91));
  EXPECT_EQ(c.max_abs(), 2);
  // Largest magnitude 6, in [4, 8): float32 spacing 2^-21.
  EXPECT_EQ(c.max_u(), 2 * std::ldexp(1.0, 21));
  // x . ref = 1 + 4 + 6 + 16 + 35 + 36 = 98, ||x||^2 = 1 + 4 + 4 + 16 + 49 + 36 = 110.
  EXPECT_DOUBLE_EQ(c.cosine(), 98 / std::sqrt(91.0 * 110));
  EXPECT_DOUBLE_EQ(c.reference_norm(), std::sqrt(91.0));
  EXPECT_DOUBLE_EQ(c.norm(), std::sqrt(110.0));
  // Sorted |difference|: 0 0 0 0 1 2, ranks 0 to 5: p50 at 2.5, p90 at 4.5, p99 at 4.95.
  EXPECT_EQ(c.abs_diff().p50(), 0);
  EXPECT_DOUBLE_EQ(c.abs_diff().p90(), 1.5);
  EXPECT_NEAR(c.abs_diff().p99(), 1.95, 1e-12);
  EXPECT_NEAR(c.abs_diff().p99_9(), 1.995, 1e-12);
  EXPECT_EQ(c.first_differing_row().row(), 1);
  EXPECT_EQ(c.first_differing_row().kind(), v1::ROW_KIND_OTHER);
  EXPECT_FALSE(c.zero_reference());
  EXPECT_EQ(c.reference_sha256(),
            Sha256Hex(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(reference.data()), 24)));
}

TEST(CompareTensors, EqualTensorsAreEqual) {
  const std::vector<float> values = {1, -2, 3};
  const v1::TensorComparison c = Compare(Floats(values, {3}), Floats(values, {3}));
  EXPECT_TRUE(c.bitwise_equal());
  EXPECT_EQ(c.relative_l2(), 0);
  EXPECT_EQ(c.max_u(), 0);
  EXPECT_EQ(c.cosine(), 1);
  EXPECT_FALSE(c.has_first_differing_row());
  EXPECT_EQ(c.sha256(), c.reference_sha256());
}

TEST(CompareTensors, UnitsAreOfTheTypeOfX) {
  const std::vector<float> reference = {1.5f, -0.25f};
  const std::vector<bfloat16> x = Rounded({1.5f, -0.25f + std::ldexp(1.0f, -7)});
  const v1::TensorComparison c =
      Compare(Floats(reference, {2}), AsComparedTensor(x.data(), DType::kBF16, {2}));
  EXPECT_EQ(c.max_u(), 1);  // bfloat16 spacing at 1.5 is 2^-7
  EXPECT_EQ(c.dtype(), "BF16");
  EXPECT_EQ(c.reference_dtype(), "F32");
}

TEST(CompareTensors, WidensOtherTypesExactly) {
  const std::vector<float> reference = {1, 0.5f, -0.0f};
  const std::vector<bfloat16> x = Rounded({1, 0.5f, 0.0f});
  // Equal values, zeros of either sign included, as the types differ.
  EXPECT_TRUE(Compare(Floats(reference, {3}), AsComparedTensor(x.data(), DType::kBF16, {3}))
                  .bitwise_equal());
  const std::vector<float> negative = {0.0f}, positive = {-0.0f};
  // Bytes where they are the same.
  EXPECT_FALSE(Compare(Floats(negative, {1}), Floats(positive, {1})).bitwise_equal());

  const uint16_t half[] = {0x3C00, 0xC000, 0x0001, 0x7BFF};
  const std::vector<double> wide = {1, -2, std::ldexp(1.0, -24), 65504};
  EXPECT_TRUE(Compare(AsComparedTensor(wide.data(), DType::kF64, {4}),
                      AsComparedTensor(half, DType::kF16, {4}))
                  .bitwise_equal());
}

TEST(CompareTensors, ComparesIndicesWithIndicesOnly) {
  const std::vector<int64_t> a = {1, 2, 3}, b = {1, 2, 5};
  const v1::TensorComparison c = Compare(AsComparedTensor(a.data(), DType::kI64, {3}),
                                         AsComparedTensor(b.data(), DType::kI64, {3}));
  EXPECT_EQ(c.differing_elements(), 1);
  EXPECT_EQ(c.max_u(), 2);
  const std::vector<float> x = {1, 2, 3};
  EXPECT_EQ(Compare(AsComparedTensor(a.data(), DType::kI64, {3}), Floats(x, {3})).incomparable(),
            "type I64 against F32");
}

TEST(CompareTensors, ZeroReferenceGivesTheNormOfX) {
  const std::vector<float> zero = {0, 0}, x = {3, 4};
  v1::TensorComparison c = Compare(Floats(zero, {2}), Floats(x, {2}));
  EXPECT_TRUE(c.zero_reference());
  EXPECT_EQ(c.relative_l2(), 5);
  EXPECT_EQ(c.cosine(), 0);
  c = Compare(Floats(zero, {2}), Floats(zero, {2}));
  EXPECT_TRUE(c.zero_reference());
  EXPECT_EQ(c.relative_l2(), 0);
  EXPECT_EQ(c.cosine(), 1);
}

TEST(CompareTensors, CountsWhatIsNotFiniteAndGivesNoNumber) {
  const std::vector<float> reference = {1, kNan, 3, 4, kInfinity, 6};
  const std::vector<float> x = {1, 2, kInfinity, -kInfinity, kNan, kNan};
  const v1::TensorComparison c = Compare(Floats(reference, {3, 2}), Floats(x, {3, 2}));
  EXPECT_EQ(c.nonfinite().nan(), 2);
  EXPECT_EQ(c.nonfinite().infinity(), 2);
  EXPECT_EQ(c.nonfinite().reference_nan(), 1);
  EXPECT_EQ(c.nonfinite().reference_infinity(), 1);
  EXPECT_TRUE(std::isnan(c.relative_l2()));
  EXPECT_TRUE(std::isnan(c.max_abs()));
  EXPECT_TRUE(std::isnan(c.abs_diff().p50()));
  EXPECT_EQ(c.first_differing_row().row(), 0);
}

TEST(CompareTensors, SaysWhichShapesDiffer) {
  const std::vector<float> values(6, 1.0f);
  const v1::TensorComparison c = Compare(Floats(values, {2, 3}), Floats(values, {3, 2}));
  EXPECT_EQ(c.incomparable(), "shape (2, 3) against (3, 2)");
  EXPECT_FALSE(c.bitwise_equal());
  EXPECT_NE(c.sha256(), "");
}

TEST(CompareTensors, TakesScalarsAndTensorsWithoutElements) {
  const std::vector<float> one = {2}, other = {3}, none;
  EXPECT_EQ(Compare(Floats(one, {}), Floats(other, {})).max_abs(), 1);
  EXPECT_TRUE(Compare(Floats(none, {0, 4}), Floats(none, {0, 4})).bitwise_equal());
}

// As a reader of the specification would write it, in long double and with a full sort.
struct Naive {
  double relative_l2, max_abs, cosine, p50, p90, p99, p99_9;
};

Naive NaiveMeasures(const std::vector<float>& reference, const std::vector<float>& x) {
  long double difference = 0, ref = 0, own = 0, product = 0;
  std::vector<double> sorted;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double a = reference[i], b = x[i];
    difference += (a - b) * (a - b);
    ref += a * a;
    own += b * b;
    product += a * b;
    sorted.push_back(std::fabs(static_cast<double>(a - b)));
  }
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](double fraction) {
    const double position = fraction * (sorted.size() - 1);
    const size_t low = std::floor(position), high = std::ceil(position);
    return sorted[low] + (position - low) * (sorted[high] - sorted[low]);
  };
  return {static_cast<double>(std::sqrt(difference / ref)),
          sorted.back(),
          static_cast<double>(product / std::sqrt(ref * own)),
          percentile(0.5),
          percentile(0.9),
          percentile(0.99),
          percentile(0.999)};
}

TEST(CompareTensors, AgreesWithANaiveImplementationForAnyNumberOfThreads) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {1, 1, 1}, {1, 53, 2, 128}, {3, 2304}, {2, 517, 97}, {70001}}) {
    int64_t size = 1;
    for (int64_t extent : shape) size *= extent;
    std::vector<float> reference(size), x(size);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < size; ++i) {
      reference[i] = normal(random);
      x[i] = random() % 4 == 0 ? reference[i] : reference[i] + 1e-2f * normal(random);
    }
    x[size - 1] = reference[size - 1] + 1;
    const v1::TensorComparison c = Compare(Floats(reference, shape), Floats(x, shape));
    const Naive naive = NaiveMeasures(reference, x);
    EXPECT_NEAR(c.relative_l2(), naive.relative_l2, 1e-12);
    EXPECT_EQ(c.max_abs(), naive.max_abs);
    EXPECT_NEAR(c.cosine(), naive.cosine, 1e-12);
    EXPECT_NEAR(c.abs_diff().p50(), naive.p50, 1e-7 * naive.max_abs);
    EXPECT_NEAR(c.abs_diff().p90(), naive.p90, 1e-7 * naive.max_abs);
    EXPECT_NEAR(c.abs_diff().p99(), naive.p99, 1e-7 * naive.max_abs);
    EXPECT_NEAR(c.abs_diff().p99_9(), naive.p99_9, 1e-7 * naive.max_abs);
    const std::string bytes = c.SerializeAsString();
    for (int threads : {2, 8}) {
      EXPECT_EQ(Compare(Floats(reference, shape), Floats(x, shape), threads).SerializeAsString(),
                bytes)
          << threads << " threads";
    }
  }
}

TEST(CompareTensors, ReadsStridedRows) {
  // Every second row of four.
  const std::vector<float> whole = {1, 2, 9, 9, 3, 4, 9, 9}, dense = {1, 2, 3, 4};
  ComparedTensor strided = Floats(dense, {2, 2});
  strided.tensor.data = const_cast<float*>(whole.data());
  strided.tensor.row_stride = 4;
  const v1::TensorComparison c = Compare(Floats(dense, {2, 2}), strided);
  EXPECT_TRUE(c.bitwise_equal());
  EXPECT_EQ(c.sha256(), c.reference_sha256());
}

TEST(AddExecution, KeepsTheFirstDifferenceOfAllExecutions) {
  const std::vector<float> first = {1, 2, 3, 4, 5, 6};
  std::vector<float> other = first;
  const Tensor a = Floats(first, {3, 2}).tensor, b = Floats(other, {3, 2}).tensor;
  v1::EqualityCheck check;
  AddExecution(a, b, "batch of 2", NameOtherRow, &check);
  EXPECT_EQ(check.result(), v1::EQUALITY_EQUAL);
  other[3] = 7;
  other[4] = 8;
  AddExecution(a, b, "rows 1 of 3", NameOtherRow, &check);
  other[0] = 9;
  AddExecution(a, b, "rows 2 of 3", NameOtherRow, &check);
  EXPECT_EQ(check.result(), v1::EQUALITY_DIFFERENT);
  EXPECT_EQ(check.executions(), 3);
  EXPECT_EQ(check.variation(), "rows 1 of 3");
  EXPECT_EQ(check.first_differing_row().row(), 1);
  EXPECT_EQ(check.first_differing_column(), 1);
  EXPECT_EQ(check.value(), 4);
  EXPECT_EQ(check.other_value(), 7);
  EXPECT_EQ(check.differing_elements(), 2);
}

TEST(AddExecution, TellsBytesApartThatCompareEqual) {
  const std::vector<float> zero = {0.0f, kNan}, negative = {-0.0f, kNan};
  v1::EqualityCheck check;
  AddExecution(Floats(zero, {2}).tensor, Floats(negative, {2}).tensor, "repeat", NameOtherRow,
               &check);
  EXPECT_EQ(check.differing_elements(), 1);
}

}  // namespace
}  // namespace plumbline::drift
