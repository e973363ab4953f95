#include <algorithm>

#include "common/status.h"
#include "kernels/candidate/cuda/sm90_attention.h"
#include "kernels/candidate/cuda/sm90_attention_forward.cuh"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/sm90.h"
#include "kernels/cuda/tensor_map.h"

namespace plumbline::candidate_cuda {
namespace {

using cuda::AttentionShape;

constexpr char kName[] = "candidate Attention";

template <typename Tiles>
absl::Status Launch(cudaStream_t stream, const ForwardCall& call) {
  const Tensor& q = call.inputs[0];
  const AttentionShape shape(q, call.attributes);
  CUtensorMap q_map, k_map, v_map;
  PLUMBLINE_RETURN_IF_ERROR(cuda::MapHeads(q, Tiles::kWidth, Tiles::kQueries, &q_map));
  PLUMBLINE_RETURN_IF_ERROR(cuda::MapHeads(call.inputs[1], Tiles::kWidth, Tiles::kKeys, &k_map));
  PLUMBLINE_RETURN_IF_ERROR(cuda::MapHeads(call.inputs[2], Tiles::kWidth, Tiles::kKeys, &v_map));
  const sm90::ForwardProblem problem = {
      static_cast<int>(q.rows),
      shape.heads,
      static_cast<int>(q.batch),
      static_cast<int>((q.rows + Tiles::kQueries - 1) / Tiles::kQueries),
      shape.scale_log2e,
      static_cast<float*>(call.saved),
      cuda::View<cuda::bf16>(call.output)};
  const auto kernel = sm90::AttentionForwardKernel<Tiles>;
  PLUMBLINE_RETURN_IF_ERROR(
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Tiles::kSharedBytes),
                 kName));
  const int works = problem.items * problem.heads * problem.query_tiles;
  const int blocks = std::min(works, cuda::MultiprocessorCount());
  return cuda::LaunchEarly(stream, kName, kernel, blocks, Tiles::kThreads, Tiles::kSharedBytes,
                           q_map, k_map, v_map, problem);
}

}  // namespace

bool TakesSm90AttentionForward(const ForwardCall& call) {
  const int64_t width = call.attributes.head_width;
  return (width == 64 || width == 128) && cuda::IsMappable(call.inputs[0]) &&
         cuda::IsMappable(call.inputs[1]) && cuda::IsMappable(call.inputs[2]) &&
         cuda::IsAligned(call.output, 2) && call.inputs[0].NumElements() > 0 &&
         cuda::RunsSm90Code();
}

absl::Status Sm90AttentionForward(cudaStream_t stream, const ForwardCall& call) {
  return call.attributes.head_width == 64 ? Launch<sm90::ForwardTiles<64, 128>>(stream, call)
                                          : Launch<sm90::ForwardTiles<128, 176>>(stream, call);
}

}  // namespace plumbline::candidate_cuda
