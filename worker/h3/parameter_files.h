#ifndef PLUMBLINE_WORKER_H3_PARAMETER_FILES_H_
#define PLUMBLINE_WORKER_H3_PARAMETER_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/safetensors.h"
#include "worker/h3/parameter_source.h"

// One model's folder of a checkpoint in the released (Hugging Face) layout: config.json and
// diffusion_pytorch_model.safetensors.index.json with its shards, or the single file
// diffusion_pytorch_model.safetensors.

namespace plumbline::h3 {

// The text of DIRECTORY/`model`/config.json. `directory` is a path that was resolved under `roots`;
// the files inside may be links, but must lie under `roots` too. Errors name the file.
absl::StatusOr<std::string> ReadModelConfig(const std::string& directory, absl::string_view model,
                                            const std::vector<std::string>& roots);

// The model's tensors, mapped. INVALID_ARGUMENT says what is missing or malformed.
absl::StatusOr<std::shared_ptr<const SafetensorsFile>> OpenModelFile(
    const std::string& directory, absl::string_view model, const std::vector<std::string>& roots);

// Everything in which a file's tensors differ from `parameters`: missing, and of another shape or
// type; and unless `others_allowed`, those that are no parameters of the model, which errors call
// `model`.
absl::Status CheckModelTensors(const std::vector<ParameterSpec>& parameters,
                               const SafetensorsFile& file, absl::string_view model,
                               bool others_allowed);

// One parameter of a file that was checked: mapped, or copied where its bytes lie unaligned.
absl::StatusOr<WeightView> ReadParameter(const std::shared_ptr<const SafetensorsFile>& file,
                                         const ParameterSpec& parameter);

// "released layout, 14 shards".
std::string DescribeFile(const SafetensorsFile& file);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PARAMETER_FILES_H_
