// kAttention of the candidate: softmax(q k^T / sqrt(D)) v for each head and batch item, no mask, D
// at most 128.
//
// Shapes: q, k, v and the output (batch, R, heads * D) bfloat16.
// Forward, an online softmax over tiles of 64 keys in ascending order. Of one tile: s = q k;
//   m' = max(m, s); p = exp((s - m') / sqrt(D)); l = l exp((m - m') / sqrt(D)) + sum of p;
//   o = o exp((m - m') / sqrt(D)) + round(p) v. In the end o / l, rounded once. Everything between
//   is float32; exp is the hardware's 2^x of the product with log2(e).
// Saved for the backward: m / sqrt(D) log2(e) + log2(l), float32, (batch * heads, R).
// Backward of g: delta = sum of g o over the channels, o the bfloat16 output; p = exp(s / sqrt(D))
// /
//   l; dp = g v; ds = round(p (dp - delta) / sqrt(D)); dv = sum of round(p) g, dk = sum of ds q,
//   dq = sum of ds k; float32 with one rounding of each.
// Order: q k and g v over the channels, 16 at a time as kernels/candidate/cuda/bf16_product.h has
//   it; p v, and in the backward the sums over queries and over keys, likewise in ascending order,
//   filled up with zeros to whole tiles; l as each of four threads adds its keys of every tile, and
//   then these four; delta as in kernels/cuda/row_sum.cuh. No atomics: the gradients of k and v are
//   one kernel, that of q another, and both compute p again. A row's bytes depend on its own q and
//   on all k and v of its item and head, in their order, and on nothing else.
// On Hopper, for D of 64 and 128 where the copy engine can address the tensors (sm90_attention.h),
//   the same but for this: tiles of 128 (D = 64) or 176 (D = 128) keys; of a tile each of the four
//   threads adds the even and the odd ones of its keys apart, and then the two; in the end o (1 /
//   l), the reciprocal rounded.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_ATTENTION_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

// The parts of the operation, in attention_forward.cu and attention_backward.cu.
absl::Status AttentionForward(cudaStream_t stream, const ForwardCall& call);
size_t AttentionBackwardBytes(const BackwardCall& call);
absl::Status AttentionBackward(cudaStream_t stream, const BackwardCall& call, float* workspace);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_ATTENTION_H_
