#include "worker/checkpoint/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/evidence/canonical_json.h"
#include "common/json.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::checkpoint {
namespace {

using nlohmann::json;

constexpr absl::string_view kFormat = "plumbline-manifest-1";
constexpr JsonLimits kLimits = {.max_bytes = 64 << 20, .max_values = 1 << 22};

absl::string_view LayoutName(v1::CheckpointLayout layout) {
  switch (layout) {
    case v1::CHECKPOINT_LAYOUT_NATIVE:
      return "native";
    case v1::CHECKPOINT_LAYOUT_SYNTHETIC:
      return "synthetic";
    default:
      return "released";
  }
}

std::string DigestOf(json manifest) {
  manifest.erase("sha256");
  return Sha256Hex(CanonicalJson(manifest));
}

absl::StatusOr<Manifest::Tensor> ReadTensor(const json& value, absl::string_view where) {
  Manifest::Tensor tensor;
  if (!value.is_object()) return FieldError(where, "is no object");
  PLUMBLINE_ASSIGN_OR_RETURN(tensor.dtype, GetString(value, where, "dtype"));
  PLUMBLINE_ASSIGN_OR_RETURN(tensor.shape,
                             GetIntArray(value, where, "shape", 0, 32, 0, int64_t{1} << 40));
  PLUMBLINE_ASSIGN_OR_RETURN(tensor.sha256, GetString(value, where, "sha256"));
  PLUMBLINE_ASSIGN_OR_RETURN(tensor.norm, GetDouble(value, where, "norm"));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string rows, GetString(value, where, "row_sum"));
  if (!absl::SimpleHexAtoi(rows, &tensor.row_sum)) {
    return FieldError(absl::StrCat(where, ": row_sum"), absl::StrCat(Quoted(rows), " is no sum"),
                      "up to 16 hexadecimal digits");
  }
  const auto parts = value.find("part_norms");
  if (parts == value.end() || !parts->is_array()) {
    return FieldError(absl::StrCat(where, ": part_norms"), "is no array", "an array of numbers");
  }
  for (const json& part : *parts) {
    if (!part.is_number()) {
      return FieldError(absl::StrCat(where, ": part_norms"), "holds what is no number", "numbers");
    }
    tensor.part_norms.push_back(part.get<double>());
  }
  return tensor;
}

}  // namespace

std::string ManifestText(const Scan& scan) {
  json files = json::object(), tensors = json::object();
  for (const v1::CheckpointReport::File& file : scan.files) {
    files[file.path()] = {{"size_bytes", file.size_bytes()}, {"sha256", file.sha256()}};
  }
  for (const ScannedTensor& tensor : scan.tensors) {
    tensors[tensor.name] = {{"dtype", std::string(DTypeName(tensor.dtype))},
                            {"shape", tensor.shape},
                            {"sha256", tensor.figures.sha256},
                            {"norm", tensor.figures.norm},
                            {"part_norms", tensor.figures.part_norms},
                            {"row_sum", absl::StrFormat("%016x", tensor.figures.row_sum)}};
  }
  json manifest = {{"format", std::string(kFormat)},
                   {"layout", std::string(LayoutName(scan.layout))},
                   {"checkpoint_sha256", scan.sha256},
                   {"files", std::move(files)},
                   {"tensors", std::move(tensors)}};
  manifest["sha256"] = DigestOf(manifest);
  return ReadableJson(manifest, 2);
}

absl::StatusOr<Manifest> ReadManifest(absl::string_view text, absl::string_view where) {
  PLUMBLINE_ASSIGN_OR_RETURN(const json value, ParseJson(text, where, kLimits));
  if (!value.is_object()) return FieldError(where, "not a JSON object", "a checkpoint manifest");
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string format, GetString(value, where, "format"));
  if (format != kFormat) {
    return FieldError(absl::StrCat(where, ": format"), absl::StrCat("is ", Quoted(format)),
                      kFormat);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string digest, GetString(value, where, "sha256"));
  if (digest != DigestOf(value)) {
    return FieldError(absl::StrCat(where, ": sha256"), "is not the digest of the manifest",
                      "a manifest as `plumbline checkpoint manifest` wrote it");
  }
  Manifest manifest;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string layout, GetString(value, where, "layout"));
  for (v1::CheckpointLayout known : {v1::CHECKPOINT_LAYOUT_DIFFUSERS, v1::CHECKPOINT_LAYOUT_NATIVE,
                                     v1::CHECKPOINT_LAYOUT_SYNTHETIC}) {
    if (layout == LayoutName(known)) manifest.layout = known;
  }
  if (manifest.layout == v1::CHECKPOINT_LAYOUT_UNSPECIFIED) {
    return FieldError(absl::StrCat(where, ": layout"), absl::StrCat("is ", Quoted(layout)),
                      "released, native, synthetic");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(manifest.sha256, GetString(value, where, "checkpoint_sha256"));
  for (const char* key : {"files", "tensors"}) {
    if (!value.contains(key) || !value[key].is_object()) {
      return FieldError(absl::StrCat(where, ": ", key), "is no object", "an object by name");
    }
  }
  for (const auto& [path, file] : value["files"].items()) {
    const std::string place = absl::StrCat(where, ": ", Quoted(path));
    if (!file.is_object()) return FieldError(place, "is no object");
    Manifest::File& read = manifest.files[path];
    PLUMBLINE_ASSIGN_OR_RETURN(read.size_bytes, GetInt(file, place, "size_bytes", 0));
    PLUMBLINE_ASSIGN_OR_RETURN(read.sha256, GetString(file, place, "sha256"));
  }
  for (const auto& [name, tensor] : value["tensors"].items()) {
    PLUMBLINE_ASSIGN_OR_RETURN(manifest.tensors[name],
                               ReadTensor(tensor, absl::StrCat(where, ": ", Quoted(name))));
  }
  return manifest;
}

}  // namespace plumbline::checkpoint
