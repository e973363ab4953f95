#include "common/safetensors_writer.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/safetensors_header.h"
#include "common/status.h"

namespace plumbline {
namespace {

// The order of the reference implementation, safetensors/src/tensor.rs: `Dtype`, descending.
int OrderOf(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return 0;
    case DType::kF64:
      return 1;
    case DType::kF32:
      return 2;
    case DType::kI32:
      return 3;
    case DType::kBF16:
      return 4;
    case DType::kF16:
      return 5;
    case DType::kU8:
      return 6;
  }
  return 7;
}

absl::StatusOr<std::string> JsonString(absl::string_view text, absl::string_view what) {
  try {
    return nlohmann::json(std::string(text)).dump();
  } catch (const nlohmann::json::type_error&) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", Quoted(text), " is not valid UTF-8"));
  }
}

absl::StatusOr<std::string> MetadataText(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> members;
  for (const auto& [key, value] : metadata) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string key_text, JsonString(key, "metadata key"));
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string value_text, JsonString(value, "metadata value"));
    members.push_back(absl::StrCat(key_text, ":", value_text));
  }
  return absl::StrCat("\"__metadata__\":{", absl::StrJoin(members, ","), "}");
}

absl::StatusOr<uint64_t> SizeBytes(const TensorSpec& spec) {
  const int64_t elements = NumElements(spec.shape);
  const int64_t element_bytes = DTypeSize(spec.dtype);
  if (elements < 0 || elements > std::numeric_limits<int64_t>::max() / element_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(spec.name), ": shape [",
                                                   absl::StrJoin(spec.shape, ", "),
                                                   "] is negative or beyond 64 bits"));
  }
  return static_cast<uint64_t>(elements * element_bytes);
}

}  // namespace

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, const std::vector<TensorSpec>& tensors,
    const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorSpec*> order;
  for (const TensorSpec& spec : tensors) order.push_back(&spec);
  std::sort(order.begin(), order.end(), [](const TensorSpec* a, const TensorSpec* b) {
    return std::make_pair(OrderOf(a->dtype), absl::string_view(a->name)) <
           std::make_pair(OrderOf(b->dtype), absl::string_view(b->name));
  });

  std::vector<std::string> members;
  if (!metadata.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(std::string text, MetadataText(metadata));
    members.push_back(std::move(text));
  }
  absl::flat_hash_map<std::string, Place> places;
  uint64_t data_bytes = 0;
  for (const TensorSpec* spec : order) {
    if (spec->name.empty() || spec->name == "__metadata__") {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", Quoted(spec->name), " cannot name a tensor"));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string name, JsonString(spec->name, "tensor name"));
    PLUMBLINE_ASSIGN_OR_RETURN(const uint64_t size_bytes, SizeBytes(*spec));
    if (size_bytes > std::numeric_limits<int64_t>::max() - data_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": more than 2^63-1 bytes of data"));
    }
    if (!places.emplace(spec->name, Place{data_bytes, size_bytes, 0, false}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": two tensors are named ", Quoted(spec->name)));
    }
    members.push_back(absl::StrCat(name, ":{\"dtype\":\"", DTypeName(spec->dtype), "\",\"shape\":[",
                                   absl::StrJoin(spec->shape, ","), "],\"data_offsets\":[",
                                   data_bytes, ",", data_bytes + size_bytes, "]}"));
    data_bytes += size_bytes;
  }

  std::string text = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string header;
  for (int shift = 0; shift < 64; shift += 8) {
    header.push_back(static_cast<char>(static_cast<uint64_t>(text.size()) >> shift & 0xff));
  }
  header += text;

  PLUMBLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  SafetensorsWriter writer(path, std::move(file));
  PLUMBLINE_RETURN_IF_ERROR(writer.file_.WriteAt(
      0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(header.data()), header.size())));
  for (auto& [name, place] : places) place.offset += header.size();
  writer.places_ = std::move(places);
  return writer;
}

absl::StatusOr<SafetensorsWriter::Place*> SafetensorsWriter::Find(absl::string_view name) {
  const auto found = places_.find(name);
  if (found != places_.end()) return &found->second;
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": tensor ", Quoted(name), " was not declared"));
}

absl::Status SafetensorsWriter::Write(absl::string_view name, absl::Span<const uint8_t> bytes) {
  PLUMBLINE_ASSIGN_OR_RETURN(Place* const place, Find(name));
  if (place->begun) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": tensor ", Quoted(name), " is written already"));
  }
  if (bytes.size() != place->size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": tensor ", Quoted(name), " takes ",
                                                   place->size_bytes, " bytes, not ",
                                                   bytes.size()));
  }
  return WritePart(name, 0, bytes);
}

absl::Status SafetensorsWriter::WritePart(absl::string_view name, uint64_t offset,
                                          absl::Span<const uint8_t> bytes) {
  PLUMBLINE_ASSIGN_OR_RETURN(Place* const place, Find(name));
  if (offset > place->size_bytes || bytes.size() > place->size_bytes - offset ||
      bytes.size() > place->size_bytes - place->written_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": tensor ", Quoted(name), " takes ", place->size_bytes, " bytes, not ",
                     bytes.size(), " at ", offset, " behind ", place->written_bytes));
  }
  PLUMBLINE_RETURN_IF_ERROR(file_.WriteAt(place->offset + offset, bytes));
  place->written_bytes += bytes.size();
  place->begun = true;
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish() {
  for (const auto& [name, place] : places_) {
    if (!place.begun || place.written_bytes != place.size_bytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          path_, ": tensor ", Quoted(name), " was not written", place.begun ? " to its end" : ""));
    }
  }
  return file_.Commit();
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorView& tensor : tensors) specs.push_back(tensor.spec);
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                             SafetensorsWriter::Create(path, specs, metadata));
  for (const TensorView& tensor : tensors) {
    PLUMBLINE_RETURN_IF_ERROR(writer.Write(tensor.spec.name, tensor.bytes));
  }
  return writer.Finish();
}

}  // namespace plumbline
