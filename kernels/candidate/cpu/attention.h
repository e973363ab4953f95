// Attention: softmax(q k^T / sqrt(D)) v for each head and batch item, no mask.
//
// Shapes: q, k, v and the output (batch, R, heads * D) bfloat16.
// Everything between the bfloat16 inputs and the one rounding of the output is float32:
//   s = (q k) / sqrt(D); m = max over the keys of s; p = exp(s - m); l = sum of p; o = (p v) / l.
// Saved for the backward: m and l, float32, each (batch * heads, R).
// Order: q k in order of the channel; the row sum as in kernels/cpu/row_reductions.h; p v over the
// keys in runs of 256 (float_tile.h). There are two passes over the keys, so nothing is rescaled on
// the way. A row's bytes depend on its own q and on all k and v of its item and head, in their
// order, and on nothing else.
//
// Backward of g, float32 but for the inputs and the one rounding of each result:
//   delta = sum of g o over the channels, o the bfloat16 output, in the row sum's order;
//   p = exp(s - m) / l; dp = g v; ds = p (dp - delta) / sqrt(D);
//   dq = ds k over the keys, dv = p^T g and dk = ds^T q over the queries, in runs of 256.
// No atomics: each gradient row is summed by one thread, in order.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_ATTENTION_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_ATTENTION_H_

#include <cstddef>
#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeAttention();

// The parts of the operation, in attention_forward.cc and attention_backward.cc.
size_t AttentionForwardBytes(const ForwardCall& call, const ExecutionContext& context);
void AttentionForward(const ExecutionContext& context, const ForwardCall& call);
size_t AttentionBackwardBytes(const BackwardCall& call, const ExecutionContext& context);
void AttentionBackward(const ExecutionContext& context, const BackwardCall& call);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_ATTENTION_H_
