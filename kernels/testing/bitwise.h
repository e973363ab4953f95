#ifndef PLUMBLINE_KERNELS_TESTING_BITWISE_H_
#define PLUMBLINE_KERNELS_TESTING_BITWISE_H_

#include <gtest/gtest.h>

#include "kernels/tensor.h"

namespace plumbline {

// Whether two tensors in host memory have one type, one shape and the same bytes, strides aside. A
// failure names the first differing value by (item, row, column), prints both values with their
// bits, and says how many of how many differ.
//   EXPECT_TRUE(BitwiseEqual(expected, actual)) << "seed " << seed;
testing::AssertionResult BitwiseEqual(const Tensor& expected, const Tensor& actual);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_TESTING_BITWISE_H_
