// The provider's operations, one a file; each file opens with its shapes, its rounding points and
// its order of reduction. All are kMixed: bfloat16 storage, float32 where the graph says so.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_OPERATIONS_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_OPERATIONS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/ops.h"
#include "kernels/provider/cpu/gemm_path.h"

namespace plumbline::provider {

// What the operations call themselves in errors, whichever provider they serve.
inline constexpr char kFamily[] = "provider";

std::shared_ptr<const Operation> MakeTimeProjection();                // time_projection.cc
std::shared_ptr<const Operation> MakeTimeEmbedder(GemmPath path);     // time_embedder.cc
std::shared_ptr<const Operation> MakeLinear(GemmPath path);           // linear.cc
std::shared_ptr<const Operation> MakeAdalnProjection(GemmPath path);  // adaln_projection.cc
std::shared_ptr<const Operation> MakeRmsNorm();                       // rms_norm.cc
std::shared_ptr<const Operation> MakeModulatedRmsNorm();              // modulated_rms_norm.cc
std::shared_ptr<const Operation> MakeRope();                          // rope.cc
std::shared_ptr<const Operation> MakeGatedResidual();                 // gated_residual.cc
std::shared_ptr<const Operation> MakeResidual();                      // elementwise_sum.cc
std::shared_ptr<const Operation> MakeGradSum();                       // elementwise_sum.cc
std::shared_ptr<const Operation> MakeSwiGlu();                        // swiglu.cc
std::shared_ptr<const Operation> MakeScatterRows();                   // row_moves.cc
std::shared_ptr<const Operation> MakeGatherRows();                    // row_moves.cc
std::shared_ptr<const Operation> MakeCast();                          // row_moves.cc

// Where the backward of a fused attention rounds the gradient of the scores; p normalised, dp =
// dy v^T, delta = rowsum(dy y).
enum class ScoreGradient {
  // ds = round(p (dp - delta) scale): cuDNN, which PyTorch picks by itself on an H200.
  kScaled,
  // ds = round(p (dp - delta)), and the float32 sums of dq and dk are multiplied by scale at their
  // end: FlashAttention-2.
  kUnscaled,
  // ds = round(round(p) (dp - delta) scale), since p is kept in bfloat16 between its two uses: the
  // memory-efficient kernel of xFormers.
  kFromRoundedWeights,
};

// Attention by online softmax over tiles of `key_tile` keys. tiled_attention.cc
std::shared_ptr<const Operation> MakeTiledAttention(int64_t key_tile, ScoreGradient score_gradient);

// Attention as separate products and a softmax, all float32 between the inputs and the one rounding
// of a result: PyTorch's math path. math_attention.cc
std::shared_ptr<const Operation> MakeMathAttention();

// Those of the decoders, the same in every variant. decoders.cc
std::map<OpKind, std::shared_ptr<const Operation>> MakeDecoderOperations();

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_OPERATIONS_H_
