// Attention by the matrix units and the copy engine of Hopper, for heads of 64 and 128 channels.
// attention.h says what it computes and in which order.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

// Whether the current device and the shapes and alignments of `call` are such. It does not depend
// on how many rows there are.
bool TakesSm90AttentionForward(const ForwardCall& call);

absl::Status Sm90AttentionForward(cudaStream_t stream, const ForwardCall& call);

// The same for the backward. `workspace` holds Sm90AttentionBackwardBytes() bytes.
bool TakesSm90AttentionBackward(const BackwardCall& call);
size_t Sm90AttentionBackwardBytes(const BackwardCall& call);
absl::Status Sm90AttentionBackward(cudaStream_t stream, const BackwardCall& call, float* workspace);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_SM90_ATTENTION_H_
