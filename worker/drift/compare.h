#ifndef PLUMBLINE_WORKER_DRIFT_COMPARE_H_
#define PLUMBLINE_WORKER_DRIFT_COMPARE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/device.h"
#include "kernels/tensor.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "proto/plumbline/v1/layout.pb.h"

namespace plumbline::drift {

// One side of a comparison. Copied freely; owns no values.
struct ComparedTensor {
  // In the host's memory, unless a function says otherwise; the elements may begin at any address
  // and rows may be apart.
  Tensor tensor;
  // As its file or its node has it, outermost first; holds as many elements as `tensor`.
  std::vector<int64_t> shape;
  // Hex digest of the little-endian row-major bytes, if it is known already; empty: it is computed.
  std::string sha256;
};

// A tensor of any rank read as (batch, rows, width): a vector is one row, a matrix has batch 1, and
// everything behind the second dimension of a larger one is width, so that (1, rows, heads, D)
// has packed rows.
ComparedTensor AsComparedTensor(const void* data, DType dtype, const std::vector<int64_t>& shape);

// Threads to make a pool of for comparing what a device computed: one for each processor where the
// device has no pool itself, else 1.
int ComparisonThreads(Device& device);

// Says what a row is. `batch` and `row` are its indices in the tensor, from 0.
using RowNamer = std::function<v1::RowLocation(int64_t batch, int64_t row)>;

// For tensors outside the packed sequence: kind OTHER, no coordinate.
v1::RowLocation NameOtherRow(int64_t batch, int64_t row);

// Every measure of two tensors, as drift.proto defines them. Values are widened to float64 exactly
// (64-bit integers beyond 2^53 to the nearest). Sums are taken in an order that depends on the
// shape alone, not on the number of threads. Percentiles are those of |reference - x|, rounded to
// float32, interpolated linearly between the two nearest ranks. The spacing of `max_u` is that of
// x's type. Where a side has a non-finite value, relative_l2, max_abs, cosine, max_u and the
// percentiles are NaN. A shape that differs, or an integer type against another type, is told by
// `incomparable`.
v1::TensorComparison CompareTensors(absl::string_view reference_name,
                                    const ComparedTensor& reference, absl::string_view name,
                                    const ComparedTensor& x, const RowNamer& name_row,
                                    ThreadPool& threads);

// CompareTensors where the values are in the memory of `device`, strides being free. On a GPU they
// stay there: sums are taken in another fixed order, so that they differ by the rounding of a
// float64 sum; every other measure is the same. A digest that is not known already is then not
// reported, and BF16, F32 and F64 can be compared.
absl::StatusOr<v1::TensorComparison> CompareOnDevice(
    Device& device, absl::string_view reference_name, const ComparedTensor& reference,
    absl::string_view name, const ComparedTensor& x, const RowNamer& name_row, ThreadPool& threads);

// The hex digest of the row-major bytes of a tensor in the host's memory, whatever its strides.
std::string TensorSha256(const Tensor& tensor);

// "(2, 3)".
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_COMPARE_H_
