#ifndef PLUMBLINE_WORKER_H3_DECODERS_PARAMETERS_H_
#define PLUMBLINE_WORKER_H3_DECODERS_PARAMETERS_H_

#include <string>
#include <vector>

#include "worker/h3/decoders/config.h"
#include "worker/h3/parameters.h"

// The decoders' parameters as the released layout stores them, all float32, in execution order. The
// encoders' are none of them.

namespace plumbline::h3 {

std::vector<ParameterSpec> VideoDecoderParameters(const VideoDecoderConfig& config);
std::vector<ParameterSpec> AudioDecoderParameters(const AudioDecoderConfig& config);

// "decoder.transformer_blocks.N.".
std::string VideoBlockPrefix(int64_t block);
// "decoder.resblocks.N.", N the number of AMP block `kernel` of `stage`.
std::string AmpBlockPrefix(const AudioDecoderConfig& config, int64_t stage, int64_t kernel);

// Taps of the resampling filters around every activation of the audio decoder.
inline constexpr int64_t kResamplingTaps = 12;

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_PARAMETERS_H_
