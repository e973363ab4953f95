#include "kernels/numerics/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plumbline {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The distance of `value` from `reference` in units of the last place of a T at the reference.
template <typename T>
double Units(T value, long double reference) {
  const T nearest = static_cast<T>(reference);
  if (value == nearest) {
    if (std::isinf(nearest)) return 0;
  } else if (std::isinf(nearest) || std::isinf(value)) {
    return 1e30;
  }
  const T magnitude = std::fabs(nearest);
  const long double unit =
      static_cast<long double>(std::nextafter(magnitude, std::numeric_limits<T>::infinity())) -
      magnitude;
  if (std::isinf(unit)) return 0;
  return static_cast<double>(std::fabs(static_cast<long double>(value) - reference) / unit);
}

class ElementaryTest : public testing::Test {
 protected:
  // Draws doubles from [low, high), uniform in value and, where the signs are equal, in exponent.
  template <typename Function, typename Reference>
  double WorstUnits(double low, double high, Function function, Reference reference) {
    std::uniform_real_distribution<double> uniform(low, high);
    double worst = 0;
    for (int i = 0; i < 300000; ++i) {
      double x = uniform(random_);
      if (i % 2 == 0 && low > 0)
        x = std::exp2(std::log2(low) + (x - low) / (high - low) * std::log2(high / low));
      worst = std::max(worst, Units<double>(function(x), reference(static_cast<long double>(x))));
    }
    return worst;
  }

  const uint32_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, testing::Message() << "seed " << seed_};
};

double ExpOf(double x) { return Exp(x); }
double LogOf(double x) { return Log(x); }
double SinOf(double x) { return Sin(x); }
double CosOf(double x) { return Cos(x); }

TEST_F(ElementaryTest, ExpIsWithinOneUnit) {
  EXPECT_LE(WorstUnits(-1.0, 1.0, ExpOf, expl), 0.9);
  EXPECT_LE(WorstUnits(-700.0, 709.5, ExpOf, expl), 0.9);
  EXPECT_LE(WorstUnits(-746.0, -700.0, ExpOf, expl), 1.0);
  EXPECT_LE(WorstUnits(1e-20, 1.0, ExpOf, expl), 0.9);
}

TEST_F(ElementaryTest, LogIsWithinOneUnit) {
  EXPECT_LE(WorstUnits(0.5, 2.0, LogOf, logl), 1.0);
  EXPECT_LE(WorstUnits(1.0 - 1e-6, 1.0 + 1e-6, LogOf, logl), 1.0);
  EXPECT_LE(WorstUnits(1e-300, 1e300, LogOf, logl), 1.0);
  EXPECT_LE(WorstUnits(5e-324, 1e-300, LogOf, logl), 1.0);
}

TEST_F(ElementaryTest, SinAndCosAreWithinOneUnit) {
  for (const double limit : {0.5, 3.2, 1e3, 1e5, 1e9, 1.1e9, 1e18, 1e100, 1e300}) {
    EXPECT_LE(WorstUnits(-limit, limit, SinOf, sinl), 0.9) << limit;
    EXPECT_LE(WorstUnits(-limit, limit, CosOf, cosl), 0.9) << limit;
  }
}

TEST_F(ElementaryTest, SinAndCosNearMultiplesOfAQuarterTurn) {
  std::uniform_int_distribution<int64_t> multiples(1, int64_t{1} << 40);
  for (int i = 0; i < 200000; ++i) {
    const int64_t k = multiples(random_) >> (i % 40);
    const double x = static_cast<double>(k * 1.57079632679489661923132169164L);
    ASSERT_LE(Units<double>(Sin(x), sinl(x)), 0.9) << std::hexfloat << x;
    ASSERT_LE(Units<double>(Cos(x), cosl(x)), 0.9) << std::hexfloat << x;
  }
  // The double closest to a multiple of pi/2 (Kahan): 2^-60.9 away.
  const double hardest = 6381956970095103.0 * 0x1p+797;
  EXPECT_LE(Units<double>(Cos(hardest), cosl(hardest)), 0.9);
  EXPECT_LE(Units<double>(Sin(hardest), sinl(hardest)), 0.9);
}

TEST_F(ElementaryTest, SpecialArguments) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(-0.0), 1.0);
  EXPECT_EQ(Exp(kInf), kInf);
  EXPECT_EQ(Exp(-kInf), 0.0);
  EXPECT_EQ(Exp(709.8), kInf);
  EXPECT_EQ(Exp(-745.2), 0.0);
  EXPECT_EQ(Exp(-745.1), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::isnan(Exp(nan)));
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_EQ(Log(0.0), -kInf);
  EXPECT_EQ(Log(-0.0), -kInf);
  EXPECT_EQ(Log(kInf), kInf);
  EXPECT_TRUE(std::isnan(Log(-1.0)));
  EXPECT_TRUE(std::isnan(Log(nan)));
  EXPECT_EQ(Cos(0.0), 1.0);
  EXPECT_EQ(Sin(0.0), 0.0);
  EXPECT_TRUE(std::signbit(Sin(-0.0)));
  EXPECT_EQ(Sin(std::numeric_limits<double>::denorm_min()),
            std::numeric_limits<double>::denorm_min());
  for (const double x : {kInf, -kInf, nan}) {
    EXPECT_TRUE(std::isnan(Sin(x)));
    EXPECT_TRUE(std::isnan(Cos(x)));
  }
}

TEST_F(ElementaryTest, FloatResultsAreCorrectlyRounded) {
  std::uniform_real_distribution<float> exponents(-104.0f, 89.0f);
  std::uniform_real_distribution<float> angles(-1e5f, 1e5f);
  int wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    const float x = exponents(random_);
    wrong += Exp(x) != static_cast<float>(expl(x));
    wrong += Log(std::fabs(x)) != static_cast<float>(logl(std::fabs(x)));
    const float angle = angles(random_);
    wrong += Sin(angle) != static_cast<float>(sinl(angle));
    wrong += Cos(angle) != static_cast<float>(cosl(angle));
  }
  // One draw in 2^28 or so lies too close to a tie to tell; four of them in one run never.
  EXPECT_LT(wrong, 4);
}

TEST_F(ElementaryTest, ExpF32IsWithinOneUnitEverywhere) {
  // Every 37th float in the range where the result is neither 0 nor infinity, of either sign.
  double worst = 0;
  for (const uint32_t sign : {0u, 0x80000000u}) {
    for (uint32_t bits = 0; bits < 0x42D20000u; bits += 37) {  // to 105
      const uint32_t pattern = bits | sign;
      float x;
      std::memcpy(&x, &pattern, sizeof(x));
      worst = std::max(worst, Units<float>(ExpF32(x), Exp(static_cast<double>(x))));
    }
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_GT(worst, 0.4);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ExpF32(0.0f), 1.0f);
  EXPECT_EQ(ExpF32(inf), inf);
  EXPECT_EQ(ExpF32(-inf), 0.0f);
  EXPECT_EQ(ExpF32(88.73f), inf);
  EXPECT_EQ(ExpF32(-103.98f), 0.0f);
  EXPECT_TRUE(std::isnan(ExpF32(std::numeric_limits<float>::quiet_NaN())));
}

TEST_F(ElementaryTest, ExpF32HasTheSameBytesInAVectorisedLoop) {
  std::uniform_real_distribution<float> exponents(-110.0f, 95.0f);
  std::vector<float> x(4099);
  for (float& value : x) value = exponents(random_);
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = ExpF32(x[i]);
  for (size_t i = 0; i < x.size(); ++i) {
    volatile float alone = x[i];
    EXPECT_EQ(y[i], ExpF32(alone));
  }
}

}  // namespace
}  // namespace plumbline
