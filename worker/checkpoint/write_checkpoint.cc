#include "worker/checkpoint/write_checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/files.h"
#include "common/safetensors_writer.h"
#include "common/status.h"

namespace plumbline::checkpoint {
namespace {

using Parameters = absl::Span<const h3::ParameterSpec>;

constexpr char kStem[] = "diffusion_pytorch_model";

// `shards` runs of parameters, none empty, each as near to an equal part of the bytes as the order
// allows.
std::vector<Parameters> Share(const std::vector<h3::ParameterSpec>& parameters, int shards) {
  const int64_t total = h3::TotalParameterBytes(parameters);
  std::vector<Parameters> shares;
  int64_t bytes = 0;
  size_t next = 0;
  for (int shard = 1; shard <= shards; ++shard) {
    const size_t begin = next;
    // One for each that follows.
    const size_t end = parameters.size() - static_cast<size_t>(shards - shard);
    do {
      bytes += parameters[next++].NumBytes();
    } while (next < end && (shard == shards || bytes < total * shard / shards));
    shares.push_back(Parameters(parameters).subspan(begin, next - begin));
  }
  return shares;
}

absl::Status WriteShard(const h3::WeightSource& weights, Parameters parameters,
                        const std::string& path) {
  std::vector<TensorSpec> specs;
  for (const h3::ParameterSpec& parameter : parameters) {
    specs.push_back({parameter.name, parameter.dtype, parameter.shape});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs));
  for (const h3::ParameterSpec& parameter : parameters) {
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::WeightView values, weights.Get(parameter.name));
    PLUMBLINE_RETURN_IF_ERROR(writer.Write(parameter.name, values.Bytes()));
  }
  return writer.Finish();
}

}  // namespace

absl::StatusOr<int64_t> WriteCheckpoint(const h3::WeightSource& weights, int shards,
                                        const std::string& folder) {
  const std::vector<h3::ParameterSpec>& parameters = weights.parameters();
  if (shards < 1 || static_cast<size_t>(shards) > parameters.size()) {
    return FieldError("shards", absl::StrCat(shards, " files for ", parameters.size(), " tensors"),
                      absl::StrCat("1 to ", parameters.size()));
  }
  const std::string transformer = absl::StrCat(folder, "/transformer");
  std::error_code error;
  if (std::filesystem::exists(transformer, error)) {
    return absl::AlreadyExistsError(absl::StrCat(transformer, " is there already"));
  }
  std::filesystem::create_directories(transformer, error);
  if (error) return FileError(transformer, "cannot make", error.value());

  const std::vector<Parameters> shares = Share(parameters, shards);
  std::vector<absl::Status> written(shares.size());
  std::vector<std::thread> threads;
  nlohmann::json weight_map;
  for (size_t i = 0; i < shares.size(); ++i) {
    const std::string name =
        absl::StrFormat("%s-%05d-of-%05d.safetensors", kStem, i + 1, shares.size());
    for (const h3::ParameterSpec& parameter : shares[i]) weight_map[parameter.name] = name;
    threads.emplace_back([&weights, &shares, &written, i, path = transformer + "/" + name] {
      written[i] = WriteShard(weights, shares[i], path);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : written) PLUMBLINE_RETURN_IF_ERROR(status);

  const int64_t bytes = h3::TotalParameterBytes(parameters);
  const nlohmann::json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}};
  PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(transformer, "/", kStem, ".safetensors.index.json"), index.dump()));
  PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(transformer, "/config.json"),
                                                h3::CanonicalConfigJson(weights.config())));
  return bytes;
}

}  // namespace plumbline::checkpoint
