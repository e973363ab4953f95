// kRmsNorm over heads of 128 channels, kRope of such heads, and both one after the other, for q
// alone or for q and k: a chunk of 16 bytes of a head a thread. rms_norm.cuh and rope.cu say
// shapes, rounding points and order; the bytes are theirs.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_HEAD_ROWS_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_HEAD_ROWS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

// What is done to one tensor (batch, R, heads * 128).
struct HeadRows {
  Tensor x;
  Tensor weight;           // of the norm; null: none
  float* saved = nullptr;  // the norm's, or null
  Tensor normalised;       // the norm's output; its data are null where nobody reads it
  Tensor rotated;          // the rotation's output; null: none
};

// Whether heads of `head_width` channels of which 6 `frequencies` turn are taken, in tensors such
// as these. Without a rotation `frequencies` is 0.
bool TakesHeadRows(const HeadRows& heads, int64_t head_width, int64_t frequencies);

// `second` may be null; it has the first's rows, and a norm and a rotation where the first has
// them. `positions` is kRope's second input; `sine_sign` -1 turns backwards.
absl::Status RunHeadRows(cudaStream_t stream, const HeadRows& first, const HeadRows* second,
                         const Tensor& positions, const Attributes& attributes, float sine_sign);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_HEAD_ROWS_H_
