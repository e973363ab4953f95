// What the inputs of a block and of the whole model have in common.
#ifndef PLUMBLINE_WORKER_JOBS_RUN_INPUTS_H_
#define PLUMBLINE_WORKER_JOBS_RUN_INPUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/safetensors.h"
#include "common/sha256.h"
#include "google/protobuf/repeated_field.h"
#include "kernels/tensor.h"
#include "proto/plumbline/v1/layout.pb.h"
#include "worker/h3/graph.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::jobs {

// Opens a capture; null for an empty path. INVALID_ARGUMENT begins with `field`.
absl::StatusOr<std::unique_ptr<SafetensorsFile>> OpenCapture(absl::string_view field,
                                                             const std::string& path);

// The layout that a run has.
struct RunLayout {
  h3::PackedLayout packed;
  // What people call it.
  std::string label;
  v1::Layout layout;  // sizes unset where captured inputs came without a layout
};

// The layout of captured inputs, null if there are none, and of the first of `wanted`, which must
// then agree; without either, `tiny`. INVALID_ARGUMENT on `field`.
absl::StatusOr<RunLayout> ChooseLayout(const google::protobuf::RepeatedPtrField<v1::Layout>& wanted,
                                       absl::string_view field, const h3::PackedLayout* captured);

h3::RowCounts RowsOf(const h3::PackedLayout& layout);

// Whether all tensors are equal, timesteps included.
bool SameLayout(const h3::PackedLayout& a, const h3::PackedLayout& b);

// A vector in the host's memory as a tensor of rows of `width` values.
template <typename T>
Tensor VectorView(const std::vector<T>& values, DType dtype, int64_t width) {
  return Tensor::Dense(const_cast<T*>(values.data()), dtype, 1,
                       static_cast<int64_t>(values.size()) / width, width);
}

// Hex digest of the values' little-endian bytes.
template <typename T>
std::string DigestOf(const std::vector<T>& values) {
  return Sha256Hex(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                                       values.size() * sizeof(T)));
}

// Digests of the layout's tensors by their names in a capture.
std::map<std::string, std::string> LayoutDigests(const h3::PackedLayout& layout);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_RUN_INPUTS_H_
