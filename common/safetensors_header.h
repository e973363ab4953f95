#ifndef PLUMBLINE_COMMON_SAFETENSORS_HEADER_H_
#define PLUMBLINE_COMMON_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/dtype.h"

// The header of a safetensors file: 8 bytes little-endian length, then that many bytes of JSON,
// then the data (https://github.com/huggingface/safetensors, "Format").

namespace plumbline {

struct SafetensorsLimits {
  size_t max_header_bytes = 100 << 20;  // The limit of the reference implementation.
  size_t max_tensors = 1 << 17;
  size_t max_shards = 1 << 12;
};

// One tensor: row-major, little-endian bytes [begin, end) of its file's data.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // Empty for a scalar; no dimension is negative.
  uint64_t begin = 0;          // Bytes from the start of the data, after the header.
  uint64_t end = 0;
  size_t shard = 0;  // Index of the file that holds it, in a sharded set.

  uint64_t size_bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // In the order of their bytes; of equal places, by name.
  std::map<std::string, std::string> metadata;
  size_t data_offset = 0;   // Bytes from the start of the file to the data.
  uint64_t data_bytes = 0;  // Bytes of data that the tensors cover.
};

// Elements of `shape`, or -1 if a dimension is negative or the product is above 2^63-1.
int64_t NumElements(absl::Span<const int64_t> shape);

// Reads the header of `file`, all bytes of one safetensors file, without touching its data.
// INVALID_ARGUMENT, with `where` and the tensor's name, unless all of this holds: the length fits
// the file and the limits; the header is one JSON object in valid UTF-8, padded with nothing but
// spaces, with no name twice; each tensor has exactly `dtype`, `shape` and `data_offsets` of the
// right types and sizes that agree; the tensors cover the data without a hole or an overlap;
// `__metadata__`, if there, maps strings to strings.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::Span<const uint8_t> file,
                                                         absl::string_view where,
                                                         const SafetensorsLimits& limits = {});

// The same where only the file's beginning is at hand, 8 bytes and the header at least: all but
// that there are as many data as the tensors cover.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeaderAlone(absl::Span<const uint8_t> beginning,
                                                              absl::string_view where,
                                                              const SafetensorsLimits& limits = {});

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_SAFETENSORS_HEADER_H_
