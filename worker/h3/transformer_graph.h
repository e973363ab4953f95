// The forward of MiniMax-H3, written once.
#ifndef PLUMBLINE_WORKER_H3_TRANSFORMER_GRAPH_H_
#define PLUMBLINE_WORKER_H3_TRANSFORMER_GRAPH_H_

#include "worker/h3/config.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

// The 17 roles of a block in execution order: "adaln_projection", "norm1", ... "residual_mlp".
const std::vector<std::string>& BlockRoles();

// One block as a graph of its own. Inputs: "block.input" (packed rows, hidden), "block.temb"
// (timesteps, time_embed_dim), "position_ids" (packed rows, 3), "adaln_indices" (packed rows, 1).
// Its output is "block.N/residual_mlp".
Graph BuildBlockGraph(const TransformerConfig& config, int64_t block);

// The whole transformer. Inputs: "input.hidden_states" (video rows), "input.audio_hidden_states",
// "input.encoder_hidden_states" (text rows), "timestep", "position_ids", "adaln_indices",
// "timestep_indices", "text_indices", "video_indices", "audio_indices". Outputs: "output.video",
// "output.audio". Segments: "inputs" (boundaries, refiner, scatter), one a block ("block.N"),
// "outputs".
Graph BuildTransformerGraph(const TransformerConfig& config);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_TRANSFORMER_GRAPH_H_
