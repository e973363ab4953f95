#ifndef PLUMBLINE_WORKER_H3_DECODERS_GRAPHS_H_
#define PLUMBLINE_WORKER_H3_DECODERS_GRAPHS_H_

#include "worker/h3/decoders/config.h"
#include "worker/h3/graph.h"

// The decoders as data, run by the executor of the transformer. Nodes have the transformer's names
// where they compute what those do. Forward only.

namespace plumbline::h3 {

// One clip of one tile. Input "latents" (voxels, latent_channels), voxels by frame, line, column;
// "position_ids" (tokens, 3) float64, VideoPositions(). Output "proj_out" (tokens, PatchValues()):
// of each voxel the pixels in the order (channel, frame, line, column), then rows of the tokens
// that were appended, which mean nothing. A block is a segment.
Graph BuildVideoDecoderGraph(const VideoDecoderConfig& config);

// A batch of channels. Input "latents" (latents, latent_channels); output "conv_post"
// (SamplesPerLatent() * latents, 1), not clamped. An AMP block is a segment.
Graph BuildAudioDecoderGraph(const AudioDecoderConfig& config);

inline constexpr char kDecoderLatents[] = "latents";
inline constexpr char kDecoderPositions[] = "position_ids";
inline constexpr char kVideoDecoderOutput[] = "proj_out";
inline constexpr char kAudioDecoderOutput[] = "conv_post";

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_GRAPHS_H_
