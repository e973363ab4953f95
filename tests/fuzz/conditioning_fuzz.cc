// Conditioning files, as a whole: header, tensors, values.
#include "common/safetensors.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/memory_file.h"
#include "worker/h3/conditioning.h"
#include "worker/h3/config.h"
#include "worker/h3/generation_contract.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  static const auto* const contract = new h3::GenerationContract(
      h3::ParseGenerationContract(R"({"seeds": [1], "num_frames": 5, "height": 96, "width": 128,
                                      "num_audio_latents": 5, "num_inference_steps": 4})",
                                  "contract")
          .value());
  const fuzz::MemoryFile file(fuzz::Input(data, size).Rest());
  SafetensorsOptions options;
  options.limits.max_tensors = 1000;
  const auto tensors = SafetensorsFile::Open(file.path(), options);
  if (!tensors.ok()) return 0;
  const auto read = h3::ReadConditioning(*tensors, h3::TinyConfig(), *contract);
  if (read.ok()) h3::GenerationLayout(*contract, *read, "F").IgnoreError();
  return 0;
}
