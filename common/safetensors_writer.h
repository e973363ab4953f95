#ifndef PLUMBLINE_COMMON_SAFETENSORS_WRITER_H_
#define PLUMBLINE_COMMON_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/dtype.h"
#include "common/files.h"

namespace plumbline {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

// Writes one safetensors file whose tensors come in any order and one after another, so that they
// need not all be in memory. The bytes of the file depend on nothing but its content, and are those
// that the reference implementation writes: tensors by descending element size (I64, F64, F32, I32,
// BF16, F16, U8), then by name, the header padded with spaces to 8 bytes; so every tensor is
// aligned. The file appears under its name complete, in Finish, or not at all. One thread at a
// time.
class SafetensorsWriter {
 public:
  // INVALID_ARGUMENT for a name that is empty, "__metadata__", there twice or not valid UTF-8, for
  // metadata that are not valid UTF-8, and for a shape that is negative or beyond 64 bits.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, const std::vector<TensorSpec>& tensors,
      const std::map<std::string, std::string>& metadata = {});

  SafetensorsWriter(SafetensorsWriter&&) noexcept = default;

  // The whole data of one tensor. INVALID_ARGUMENT if it was not given to Create, is written
  // already, or takes another number of bytes.
  absl::Status Write(absl::string_view name, absl::Span<const uint8_t> bytes);

  // A part of one tensor's data, `offset` bytes from their start. The parts come in any order, each
  // byte once. INVALID_ARGUMENT if the tensor was not given to Create or does not reach so far.
  absl::Status WritePart(absl::string_view name, uint64_t offset, absl::Span<const uint8_t> bytes);

  // FAILED_PRECONDITION, naming it, if a tensor is not written, or not all of it.
  absl::Status Finish();

 private:
  struct Place {
    uint64_t offset;  // From the start of the file.
    uint64_t size_bytes;
    uint64_t written_bytes;
    bool begun;
  };

  absl::StatusOr<Place*> Find(absl::string_view name);

  SafetensorsWriter(std::string path, AtomicFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  AtomicFile file_;
  absl::flat_hash_map<std::string, Place> places_;
};

// A tensor whose data the caller keeps.
struct TensorView {
  TensorSpec spec;
  absl::Span<const uint8_t> bytes;
};

// All of a file at once.
absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_SAFETENSORS_WRITER_H_
