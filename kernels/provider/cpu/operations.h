// The provider's operations, one a file; each file opens with its shapes, its rounding points and
// its order of reduction. All are kMixed: bfloat16 storage, float32 where the graph says so.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_OPERATIONS_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_OPERATIONS_H_

#include <cstdint>
#include <memory>

#include "kernels/ops.h"

namespace plumbline::provider {

std::shared_ptr<const Operation> MakeTimeProjection();    // time_projection.cc
std::shared_ptr<const Operation> MakeTimeEmbedder();      // time_embedder.cc
std::shared_ptr<const Operation> MakeLinear();            // linear.cc
std::shared_ptr<const Operation> MakeAdalnProjection();   // adaln_projection.cc
std::shared_ptr<const Operation> MakeRmsNorm();           // rms_norm.cc
std::shared_ptr<const Operation> MakeModulatedRmsNorm();  // modulated_rms_norm.cc
std::shared_ptr<const Operation> MakeRope();              // rope.cc
std::shared_ptr<const Operation> MakeGatedResidual();     // gated_residual.cc
std::shared_ptr<const Operation> MakeResidual();          // elementwise_sum.cc
std::shared_ptr<const Operation> MakeGradSum();           // elementwise_sum.cc
std::shared_ptr<const Operation> MakeSwiGlu();            // swiglu.cc
std::shared_ptr<const Operation> MakeScatterRows();       // row_moves.cc
std::shared_ptr<const Operation> MakeGatherRows();        // row_moves.cc
std::shared_ptr<const Operation> MakeCast();              // row_moves.cc

// Attention by online softmax over tiles of `key_tile` keys: 128 for PyTorch's default, 64 for its
// flash kernel, 32 for its memory-efficient one. tiled_attention.cc
std::shared_ptr<const Operation> MakeTiledAttention(int64_t key_tile);

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_OPERATIONS_H_
