// kAttention of the provider, as PyTorch's fused kernels compute it: online softmax over tiles of
// keys. D head width, at most 128; scale = float32(1 / sqrt(D)).
//
//   q, k, v (batch, R, heads * D) bfloat16 -> (batch, R, heads * D)
//   forward   over the key tiles in order: s = q k^T; m = the running maximum of s; p = exp((s - m)
//             scale), not normalised; l = l exp((m_before - m) scale) + sum(p); o = o exp((m_before
//             - m) scale) + round(p) v, all float32; round(o / l); exp is the hardware's 2^x
//   backward  kernels/cuda/attention_backward.cuh, with the kernel's own rounding of ds
// Reductions: products on the matrix units, 16 terms an instruction, ascending; l as each of four
// threads adds its keys of every tile, and then these four. No atomics.
// Saved for the backward: m scale log2(e) + log2(l) of every (item, head, row), float32.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_TILED_ATTENTION_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_TILED_ATTENTION_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/ops.h"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {

// Enqueued. In tiled_attention_forward.cu and tiled_attention_backward.cu.
absl::Status TiledAttentionForward(cudaStream_t stream, TiledKernel kernel,
                                   const ForwardCall& call);
size_t TiledAttentionBackwardBytes(const BackwardCall& call);
absl::Status TiledAttentionBackward(cudaStream_t stream, TiledKernel kernel,
                                    const BackwardCall& call, float* workspace);

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_TILED_ATTENTION_H_
