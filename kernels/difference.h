#ifndef PLUMBLINE_KERNELS_DIFFERENCE_H_
#define PLUMBLINE_KERNELS_DIFFERENCE_H_

#include <array>
#include <cstdint>
#include <vector>

namespace plumbline {

// What two tensors of one shape differ by, all in float64: each value widened exactly, sums taken
// in an order that the shape alone fixes. The values of a side that are not finite spoil its sums.
struct TensorDifference {
  double difference_squares = 0;  // sums
  double reference_squares = 0;
  double x_squares = 0;
  double products = 0;
  double max_abs = 0;  // of reference - x
  double max_reference = 0;
  // Values whose bytes differ; where the types differ, values that are not equal.
  int64_t differing = 0;
  int64_t first = -1;                 // row-major index of the first of them
  std::array<int64_t, 2> nan{};       // of x, of the reference
  std::array<int64_t, 2> infinity{};  // likewise
  // Of |reference - x| rounded to float32, for each rank that was asked for: the value that has
  // this many others before it. Empty where all are zero or a value is not finite.
  std::vector<float> by_rank;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_DIFFERENCE_H_
