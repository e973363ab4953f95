#include "common/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json.h"
#include "common/status.h"

namespace plumbline {
namespace {

using nlohmann::json;

constexpr char kMetadataKey[] = "__metadata__";
constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxRank = 32;
// A tensor is an object, a string and two arrays with at most kMaxRank + 2 numbers; metadata are
// few. An average of 16 values a tensor allows for rank 10 throughout.
constexpr size_t kValuesPerTensor = 16;
// The object, the tensor, its arrays: 3. One more, so that a deeper value is named by its tensor.
constexpr int kMaxDepth = 4;

absl::Status Error(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

uint64_t LoadLittleEndian64(const uint8_t* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

// An unsigned JSON integer of at most 2^63-1, which both file offsets and shapes are.
bool ToSize(const json& value, int64_t* result) {
  if (!value.is_number_unsigned()) return false;
  const uint64_t number = value.get<uint64_t>();
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
  *result = static_cast<int64_t>(number);
  return true;
}

absl::Status ParseMetadata(const json& value, absl::string_view where,
                           std::map<std::string, std::string>* metadata) {
  if (!value.is_object()) {
    return Error(where, "__metadata__ is no object; accepted: an object of strings");
  }
  for (const auto& [key, member] : value.items()) {
    if (!member.is_string()) {
      return Error(where, absl::StrCat("__metadata__: value of ", Quoted(key),
                                       " is no string; accepted: strings"));
    }
    metadata->emplace(key, member.get<std::string>());
  }
  return absl::OkStatus();
}

// `where` names the file and the tensor.
absl::Status ParseTensor(const json& value, absl::string_view where,
                         std::optional<uint64_t> data_bytes, TensorInfo* tensor) {
  if (!value.is_object()) return Error(where, "is no object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) return Error(where, absl::StrCat("key \"", key, "\" is missing"));
  }
  for (const auto& [key, member] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return Error(where, absl::StrCat("unknown key ", Quoted(key),
                                       "; accepted: dtype, shape, data_offsets"));
    }
  }

  const json& dtype = value["dtype"];
  if (!dtype.is_string()) return Error(where, "dtype is no string");
  const absl::StatusOr<DType> parsed = ParseDType(dtype.get_ref<const std::string&>());
  if (!parsed.ok()) return AnnotateStatus(parsed.status(), where);
  tensor->dtype = *parsed;

  const json& shape = value["shape"];
  if (!shape.is_array()) return Error(where, "shape is no array");
  if (shape.size() > kMaxRank) {
    return Error(where, absl::StrCat("shape has ", shape.size(), " dimensions; accepted: at most ",
                                     kMaxRank));
  }
  tensor->shape.resize(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!ToSize(shape[i], &tensor->shape[i])) {
      return Error(where, absl::StrCat("shape[", i, "] is ", Quoted(shape[i].dump()),
                                       "; accepted: an integer from 0 to 2^63-1"));
    }
  }

  const json& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) {
    return Error(where, "data_offsets is no array of 2 integers");
  }
  int64_t bounds[2];
  for (size_t i = 0; i < 2; ++i) {
    if (!ToSize(offsets[i], &bounds[i])) {
      return Error(where, absl::StrCat("data_offsets[", i, "] is ", Quoted(offsets[i].dump()),
                                       "; accepted: an integer from 0 to 2^63-1"));
    }
  }
  tensor->begin = bounds[0];
  tensor->end = bounds[1];
  if (tensor->begin > tensor->end) {
    return Error(where, absl::StrCat("data_offsets begin at ", tensor->begin,
                                     ", after their end at ", tensor->end));
  }
  if (data_bytes.has_value() && tensor->end > *data_bytes) {
    return Error(where,
                 absl::StrCat("data_offsets end at ", tensor->end, ", but the file has only ",
                              *data_bytes, " bytes of data: it is truncated or corrupt"));
  }

  const int64_t elements = NumElements(tensor->shape);
  const uint64_t element_bytes = DTypeSize(tensor->dtype);
  if (elements < 0 ||
      static_cast<uint64_t>(elements) > std::numeric_limits<uint64_t>::max() / element_bytes) {
    return Error(where, absl::StrCat("shape [", absl::StrJoin(tensor->shape, ", "),
                                     "] has more elements than 64 bits can count"));
  }
  if (elements * element_bytes != tensor->size_bytes()) {
    return Error(where, absl::StrCat("shape [", absl::StrJoin(tensor->shape, ", "), "] of ",
                                     DTypeName(tensor->dtype), " takes ", elements * element_bytes,
                                     " bytes, but data_offsets span ", tensor->size_bytes()));
  }
  return absl::OkStatus();
}

// Sorts the tensors by place; refuses holes and overlaps.
absl::Status CheckCoverage(absl::string_view where, std::optional<uint64_t> data_bytes,
                           std::vector<TensorInfo>* tensors, uint64_t* covered_bytes) {
  std::sort(tensors->begin(), tensors->end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  absl::string_view previous;
  for (const TensorInfo& tensor : *tensors) {
    if (tensor.begin < covered) {
      return Error(where, absl::StrCat("tensor ", Quoted(tensor.name), ": its data from byte ",
                                       tensor.begin, " overlap those of tensor ", Quoted(previous),
                                       ", which end at ", covered));
    }
    if (tensor.begin > covered) {
      return Error(where, absl::StrCat("tensor ", Quoted(tensor.name), ": bytes ", covered, " to ",
                                       tensor.begin, " of the data before it belong to no tensor"));
    }
    covered = tensor.end;
    previous = tensor.name;
  }
  if (data_bytes.has_value() && covered != *data_bytes) {
    return Error(where, absl::StrCat("bytes ", covered, " to ", *data_bytes,
                                     " at the end of the data belong to no tensor"));
  }
  *covered_bytes = covered;
  return absl::OkStatus();
}

// The JSON text of the header, without its padding.
absl::StatusOr<absl::string_view> HeaderText(absl::Span<const uint8_t> file,
                                             absl::string_view where,
                                             const SafetensorsLimits& limits) {
  if (file.size() < kLengthBytes) {
    return Error(where, absl::StrCat("the file has ", file.size(),
                                     " bytes, fewer than the 8 of the header's length"));
  }
  const uint64_t length = LoadLittleEndian64(file.data());
  if (length > limits.max_header_bytes) {
    return Error(where, absl::StrCat("header of ", length, " bytes; accepted: at most ",
                                     limits.max_header_bytes, " (is this a safetensors file?)"));
  }
  if (length > file.size() - kLengthBytes) {
    return Error(where, absl::StrCat("header of ", length, " bytes in a file of ", file.size(),
                                     " bytes: it is truncated or corrupt"));
  }
  absl::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (text.empty() || text.front() != '{') {
    return Error(where, "the header does not begin with '{'");
  }
  while (text.back() == ' ') text.remove_suffix(1);
  if (text.back() != '}') {
    return Error(where, "the header does not end with '}' and spaces");
  }
  return text;
}

}  // namespace

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  bool zero = false;
  for (int64_t dimension : shape) {
    if (dimension < 0) return -1;
    if (dimension == 0) {
      zero = true;
    } else if (elements > std::numeric_limits<int64_t>::max() / dimension) {
      return -1;
    } else {
      elements *= dimension;
    }
  }
  return zero ? 0 : elements;
}

namespace {

// `with_data`: the data follow in `file`, and their size is held against the tensors'.
absl::StatusOr<SafetensorsHeader> ParseHeader(absl::Span<const uint8_t> file, bool with_data,
                                              absl::string_view where,
                                              const SafetensorsLimits& limits) {
  PLUMBLINE_ASSIGN_OR_RETURN(const absl::string_view text, HeaderText(file, where, limits));
  JsonLimits json_limits;
  json_limits.max_bytes = limits.max_header_bytes;
  json_limits.max_values = (limits.max_tensors + 1) * kValuesPerTensor;
  json_limits.max_depth = kMaxDepth;
  PLUMBLINE_ASSIGN_OR_RETURN(const json object,
                             ParseJson(text, absl::StrCat(where, ": header"), json_limits));

  SafetensorsHeader header;
  header.data_offset = kLengthBytes + LoadLittleEndian64(file.data());
  std::optional<uint64_t> data_bytes;
  if (with_data) data_bytes = file.size() - header.data_offset;
  if (object.size() > limits.max_tensors) {
    return Error(where,
                 absl::StrCat(object.size(), " tensors; accepted: at most ", limits.max_tensors));
  }
  for (const auto& [name, value] : object.items()) {
    if (name == kMetadataKey) {
      PLUMBLINE_RETURN_IF_ERROR(ParseMetadata(value, where, &header.metadata));
      continue;
    }
    TensorInfo tensor;
    tensor.name = name;
    PLUMBLINE_RETURN_IF_ERROR(
        ParseTensor(value, absl::StrCat(where, ": tensor ", Quoted(name)), data_bytes, &tensor));
    header.tensors.push_back(std::move(tensor));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckCoverage(where, data_bytes, &header.tensors, &header.data_bytes));
  return header;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::Span<const uint8_t> file,
                                                         absl::string_view where,
                                                         const SafetensorsLimits& limits) {
  return ParseHeader(file, /*with_data=*/true, where, limits);
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeaderAlone(absl::Span<const uint8_t> beginning,
                                                              absl::string_view where,
                                                              const SafetensorsLimits& limits) {
  return ParseHeader(beginning, /*with_data=*/false, where, limits);
}

}  // namespace plumbline
