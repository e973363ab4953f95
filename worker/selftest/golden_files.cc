#include "worker/selftest/golden_files.h"

// Begin and end of each file, from golden_files.S.
#define PLUMBLINE_GOLDEN(symbol) extern "C" const char symbol[], symbol##_end[]
PLUMBLINE_GOLDEN(plumbline_golden_block_fp32);
PLUMBLINE_GOLDEN(plumbline_golden_block_bf16);
PLUMBLINE_GOLDEN(plumbline_golden_model_fp32);
PLUMBLINE_GOLDEN(plumbline_golden_model_bf16);
PLUMBLINE_GOLDEN(plumbline_golden_inputs);
PLUMBLINE_GOLDEN(plumbline_golden_generation);
PLUMBLINE_GOLDEN(plumbline_golden_layouts);
PLUMBLINE_GOLDEN(plumbline_golden_scheduler);
PLUMBLINE_GOLDEN(plumbline_golden_rng);
PLUMBLINE_GOLDEN(plumbline_golden_video_vae);
PLUMBLINE_GOLDEN(plumbline_golden_audio_vae);
PLUMBLINE_GOLDEN(plumbline_golden_metrics);
PLUMBLINE_GOLDEN(plumbline_golden_json);
#undef PLUMBLINE_GOLDEN

namespace plumbline::selftest {
namespace {

GoldenFile File(absl::string_view name, const char* begin, const char* end) {
  return {name, absl::string_view(begin, static_cast<size_t>(end - begin))};
}

}  // namespace

std::vector<GoldenFile> GoldenFiles() {
#define PLUMBLINE_GOLDEN(name, symbol) File(name, symbol, symbol##_end)
  return {
      PLUMBLINE_GOLDEN("block0_fp32_cpu.safetensors", plumbline_golden_block_fp32),
      PLUMBLINE_GOLDEN("block0_bf16_cuda.safetensors", plumbline_golden_block_bf16),
      PLUMBLINE_GOLDEN("transformer_fp32_cpu.safetensors", plumbline_golden_model_fp32),
      PLUMBLINE_GOLDEN("transformer_bf16_cuda.safetensors", plumbline_golden_model_bf16),
      PLUMBLINE_GOLDEN("transformer_inputs.safetensors", plumbline_golden_inputs),
      PLUMBLINE_GOLDEN("generation_fp32_cpu.safetensors", plumbline_golden_generation),
      PLUMBLINE_GOLDEN("layouts.safetensors", plumbline_golden_layouts),
      PLUMBLINE_GOLDEN("scheduler.safetensors", plumbline_golden_scheduler),
      PLUMBLINE_GOLDEN("rng.safetensors", plumbline_golden_rng),
      PLUMBLINE_GOLDEN("video_vae_io.safetensors", plumbline_golden_video_vae),
      PLUMBLINE_GOLDEN("audio_vae_io.safetensors", plumbline_golden_audio_vae),
      PLUMBLINE_GOLDEN("metrics_io.safetensors", plumbline_golden_metrics),
      PLUMBLINE_GOLDEN("golden.json", plumbline_golden_json),
  };
#undef PLUMBLINE_GOLDEN
}

}  // namespace plumbline::selftest
