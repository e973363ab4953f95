#include "worker/h3/host_tensor.h"

#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::h3 {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

absl::StatusOr<HostTensor> AllocateHostTensor(DType dtype, int64_t batch, int64_t rows,
                                              int64_t width) {
  HostTensor result;
  result.tensor = Tensor::Dense(nullptr, dtype, batch, rows, width);
  const size_t bytes = result.tensor.NumBytes();
  result.tensor.data = ::operator new(bytes, kAlignment, std::nothrow);
  if (result.tensor.data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the host has no ", bytes, " bytes for a tensor"));
  }
  result.owner = std::shared_ptr<const void>(
      result.tensor.data, [](void* data) { ::operator delete(data, kAlignment); });
  return result;
}

Tensor DenseView(void* data, DType dtype, const std::vector<int64_t>& shape) {
  const size_t rank = shape.size();
  return Tensor::Dense(data, dtype, rank > 2 ? shape[rank - 3] : 1, rank > 1 ? shape[rank - 2] : 1,
                       shape[rank - 1]);
}

Tensor ParameterView(void* data, DType dtype, const std::vector<int64_t>& shape) {
  if (shape.size() == 1) return Tensor::Dense(data, dtype, 1, 1, shape[0]);
  int64_t width = 1;
  for (size_t i = 1; i < shape.size(); ++i) width *= shape[i];
  return Tensor::Dense(data, dtype, 1, shape[0], width);
}

std::string FormatShape(absl::Span<const int64_t> shape) {
  return absl::StrCat("(",
                      absl::StrJoin(shape, ", ",
                                    [](std::string* out, int64_t extent) {
                                      if (extent < 0) {
                                        absl::StrAppend(out, "any");
                                      } else {
                                        absl::StrAppend(out, extent);
                                      }
                                    }),
                      ")");
}

}  // namespace plumbline::h3
