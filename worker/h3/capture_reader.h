#ifndef PLUMBLINE_WORKER_H3_CAPTURE_READER_H_
#define PLUMBLINE_WORKER_H3_CAPTURE_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::h3 {

// Reads tensors of one capture and collects what is wrong with them, so that one error can name
// every tensor. The file must outlive it. One thread at a time.
class CaptureReader {
 public:
  explicit CaptureReader(const SafetensorsFile& file) : file_(file) {}

  // The seven tensors of a packed layout, checked and completed.
  void ReadLayout(PackedLayout* layout);

  // A float tensor of exactly this shape, one to three dimensions, widened to float32. Leaves `to`
  // alone if it cannot be had.
  void ReadFloats(absl::string_view name, const std::vector<int64_t>& shape, HostTensor* to);

  // OK, or INVALID_ARGUMENT, or RESOURCE_EXHAUSTED where memory was short.
  absl::Status status() const;

 private:
  // The tensor if it is there, has one of the types, and its shape fits: -1 stands for any extent.
  const TensorInfo* Find(absl::string_view name, absl::Span<const DType> dtypes,
                         const std::vector<int64_t>& shape);

  template <typename T>
  void ReadVector(absl::string_view name, DType dtype, const std::vector<int64_t>& shape,
                  std::vector<T>* to);

  const SafetensorsFile& file_;
  std::vector<FieldViolation> violations_;
  absl::Status failure_;  // What is no fault of the capture.
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_CAPTURE_READER_H_
