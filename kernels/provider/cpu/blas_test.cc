#include "kernels/provider/cpu/blas.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace plumbline::provider {
namespace {

TEST(BlasTest, RunsOnTheCallingThreadAlone) {
  const BlasIdentity identity = GetBlasIdentity();
  EXPECT_EQ(identity.threads, 1);
  EXPECT_EQ(identity.version.rfind("OpenBLAS 0.", 0), 0u) << identity.version;
}

// The choice is made when a program starts; in this style a death test starts the program again.
TEST(BlasDeathTest, TheAvx2KernelsAreChosenUnlessTheUserChose) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exits_zero = testing::ExitedWithCode(0);
  unsetenv("OPENBLAS_CORETYPE");
  EXPECT_EXIT(std::exit(GetBlasIdentity().core_type == "Haswell" ? 0 : 1), exits_zero, "");
  setenv("OPENBLAS_CORETYPE", "Sandybridge", /*overwrite=*/1);
  EXPECT_EXIT(std::exit(GetBlasIdentity().core_type == "Sandybridge" ? 0 : 1), exits_zero, "");
}

TEST(BlasTest, MultipliesAndAccumulates) {
  // a (2, 3), b (3, 2) and their transposes in memory; small integers, so every order is exact.
  const float a[] = {1, 2, 3, 4, 5, 6};
  const float a_transposed[] = {1, 4, 2, 5, 3, 6};
  const float b[] = {7, 8, 9, 10, 11, 12};
  const float b_transposed[] = {7, 9, 11, 8, 10, 12};
  for (const BlasMatrix& left : {BlasMatrix{a, 3, false}, BlasMatrix{a_transposed, 2, true}}) {
    for (const BlasMatrix& right : {BlasMatrix{b, 2, false}, BlasMatrix{b_transposed, 3, true}}) {
      float c[] = {-1, -1, -1, -1, -1, -1};  // rows 3 apart
      Sgemm(2, 2, 3, left, right, /*accumulate=*/false, c, 3);
      EXPECT_EQ(c[0], 58);
      EXPECT_EQ(c[1], 64);
      EXPECT_EQ(c[2], -1);
      EXPECT_EQ(c[3], 139);
      EXPECT_EQ(c[4], 154);
      Sgemm(2, 2, 3, left, right, /*accumulate=*/true, c, 3);
      EXPECT_EQ(c[0], 116);
      EXPECT_EQ(c[4], 308);
    }
  }
}

}  // namespace
}  // namespace plumbline::provider
