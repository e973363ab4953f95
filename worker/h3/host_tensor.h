#ifndef PLUMBLINE_WORKER_H3_HOST_TENSOR_H_
#define PLUMBLINE_WORKER_H3_HOST_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dtype.h"
#include "kernels/tensor.h"

namespace plumbline::h3 {

// Values in the host's memory with what keeps them alive: a buffer of their own, or a mapped file.
// Copies share the values. `tensor` is dense and aligned to its elements at least; after it was
// handed out nobody writes to it, whatever the type of Tensor::data says.
struct HostTensor {
  Tensor tensor;
  std::shared_ptr<const void> owner;

  absl::Span<const uint8_t> Bytes() const {
    return {static_cast<const uint8_t*>(tensor.data), tensor.NumBytes()};
  }
};

// A new (batch, rows, width) buffer, 64-byte aligned, its values undefined. RESOURCE_EXHAUSTED,
// with the bytes, if the memory is not to be had. The sizes' product must not overflow.
absl::StatusOr<HostTensor> AllocateHostTensor(DType dtype, int64_t batch, int64_t rows,
                                              int64_t width);

// The view of `data` that has the given shape of one to three dimensions: (width), (rows, width) or
// (batch, rows, width).
Tensor DenseView(void* data, DType dtype, const std::vector<int64_t>& shape);

// The view of a parameter's `data`: a vector (n) is one row, anything else a matrix of as many rows
// as its first extent, (outputs, channels, taps) being (outputs, channels * taps).
Tensor ParameterView(void* data, DType dtype, const std::vector<int64_t>& shape);

// "(1, any, 64)", as errors write a shape: an extent of -1 stands for any.
std::string FormatShape(absl::Span<const int64_t> shape);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_HOST_TENSOR_H_
