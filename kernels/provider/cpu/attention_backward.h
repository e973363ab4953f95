// The backward of the provider's attention, of every kernel that keeps the log-sum-exp.
//
//   q, k, v, y = output, dy(R, heads * D) bfloat16; lse(item, head, row) float32, natural
//   p = exp(q k^T scale - lse), normalised, float32; delta = sum over channels of dy y
//   dv = round(sum over queries of round(p) dy)
//   ds = round(p (dy v^T - delta) scale); dq = round(ds k); dk = round(ds^T q)
// and as the other kinds of ScoreGradient say instead.
// Reductions: products by sgemm, a tile of queries and a tile of keys a call; dq adds the key tiles
// in order, dk and dv the query tiles in order; delta as in row_reductions.h. Each result belongs
// to one thread, so the threads change no bit.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_ATTENTION_BACKWARD_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_ATTENTION_BACKWARD_H_

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline::provider {

size_t AttentionBackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext& context,
                                       int64_t query_tile, int64_t key_tile);

// `call.saved` is lse.
void AttentionBackward(const ExecutionContext& context, const BackwardCall& call,
                       ScoreGradient score_gradient, int64_t query_tile, int64_t key_tile);

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_ATTENTION_BACKWARD_H_
