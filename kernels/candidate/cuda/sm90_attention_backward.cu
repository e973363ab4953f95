#include <algorithm>
#include <cmath>
#include <type_traits>

#include "common/status.h"
#include "kernels/candidate/cuda/sm90_attention.h"
#include "kernels/candidate/cuda/sm90_attention_backward.cuh"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/sm90.h"
#include "kernels/cuda/tensor_map.h"

namespace plumbline::candidate_cuda {
namespace {

using cuda::AttentionShape;
using cuda::bf16;
using cuda::View;
using sm90::BackwardProblem;
using sm90::BackwardTiles;
using sm90::Owner;

constexpr char kName[] = "candidate Attention backward";
constexpr int64_t kPaddedTo = 640;  // a multiple of every tile of queries and of every own tile
constexpr int kPrepareThreads = 256;

int64_t PaddedRows(int64_t rows) { return (rows + kPaddedTo - 1) / kPaddedTo * kPaddedTo; }

// The logarithms and deltas as BackwardProblem has them. 16 threads a row and head; the sum is that
// of row_sum.cuh.
__global__ void __launch_bounds__(kPrepareThreads)
    PrepareKernel(AttentionShape shape, int64_t padded_rows, int64_t items, View<const bf16> grad,
                  View<const bf16> output, const float* saved, float* logarithms, float* deltas) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  constexpr int kTeams = kPrepareThreads / kFoldedThreads;
  const int64_t number = int64_t{blockIdx.x} * kTeams + threadIdx.x / kFoldedThreads;
  const int head = static_cast<int>(number % shape.heads);
  const int64_t row = number / shape.heads % padded_rows;
  const int64_t item = number / shape.heads / padded_rows;
  const int channel = threadIdx.x % kFoldedThreads * kChunkValues;
  const bool is_row = item < items && row < shape.rows;
  LaneSums sums;
  if (is_row && channel < shape.width) {
    const int64_t column = int64_t{head} * shape.width + channel;
    float gradients[kChunkValues], outputs[kChunkValues];
    WidenChunk(LoadChunkOnce(grad.Row(row, item) + column), gradients);
    WidenChunk(LoadChunkOnce(output.Row(row, item) + column), outputs);
    sums.Add(gradients, outputs);
  }
  const float delta = sums.Fold();
  if (item >= items || channel != 0) return;
  const int64_t place = item * shape.heads + head;
  logarithms[place * padded_rows + row] = is_row ? saved[place * shape.rows + row] : INFINITY;
  deltas[place * padded_rows + row] = is_row ? delta : 0.0f;
}

template <typename Tiles>
absl::Status Launch(cudaStream_t stream, const BackwardCall& call, BackwardProblem problem) {
  static_assert(kPaddedTo % Tiles::kOwn == 0);
  static_assert(!Tiles::kOwnsKeys || kPaddedTo % Tiles::kOthers == 0);
  const Tensor& q = call.inputs[0];
  const Tensor& k = call.inputs[1];
  const Tensor& v = call.inputs[2];
  const Tensor& grad = call.grad_output;
  constexpr bool kOwnsKeys = Tiles::kOwnsKeys;
  CUtensorMap first_own, second_own, first_other, second_other;
  PLUMBLINE_RETURN_IF_ERROR(
      cuda::MapHeads(kOwnsKeys ? k : q, Tiles::kWidth, Tiles::kOwn, &first_own));
  PLUMBLINE_RETURN_IF_ERROR(
      cuda::MapHeads(kOwnsKeys ? v : grad, Tiles::kWidth, Tiles::kOwn, &second_own));
  PLUMBLINE_RETURN_IF_ERROR(
      cuda::MapHeads(kOwnsKeys ? q : k, Tiles::kWidth, Tiles::kOthers, &first_other));
  PLUMBLINE_RETURN_IF_ERROR(
      cuda::MapHeads(kOwnsKeys ? grad : v, Tiles::kWidth, Tiles::kOthers, &second_other));
  const auto kernel = sm90::AttentionBackwardKernel<Tiles>;
  PLUMBLINE_RETURN_IF_ERROR(
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Tiles::kSharedBytes),
                 kName));
  problem.own_tiles = (problem.rows + Tiles::kOwn - 1) / Tiles::kOwn;
  const int works = problem.items * problem.heads * problem.own_tiles;
  const int blocks = std::min(works, cuda::MultiprocessorCount());
  return cuda::LaunchEarly(stream, kName, kernel, blocks, Tiles::kThreads, Tiles::kSharedBytes,
                           first_own, second_own, first_other, second_other, problem);
}

// The tiles that were fastest on an H200 (kernels/bench/NOTES.md).
template <int kWidth>
using KeyTiles = std::conditional_t<kWidth == 64, BackwardTiles<Owner::kKeys, 64, 64, true>,
                                    BackwardTiles<Owner::kKeys, 128, 80, false>>;
template <int kWidth>
using QueryTiles = std::conditional_t<kWidth == 64, BackwardTiles<Owner::kQueries, 64, 128, true>,
                                      BackwardTiles<Owner::kQueries, 128, 128, false>>;

template <int kWidth>
absl::Status LaunchBoth(cudaStream_t stream, const BackwardCall& call, BackwardProblem problem) {
  const Tensor& grad_q = call.grad_inputs[0];
  const Tensor& grad_k = call.grad_inputs[1];
  const Tensor& grad_v = call.grad_inputs[2];
  if (!grad_k.IsNull() || !grad_v.IsNull()) {
    problem.first_gradient = View<bf16>(grad_k);
    problem.second_gradient = View<bf16>(grad_v);
    PLUMBLINE_RETURN_IF_ERROR(Launch<KeyTiles<kWidth>>(stream, call, problem));
  }
  if (grad_q.IsNull()) return absl::OkStatus();
  problem.first_gradient = View<bf16>(grad_q);
  return Launch<QueryTiles<kWidth>>(stream, call, problem);
}

}  // namespace

bool TakesSm90AttentionBackward(const BackwardCall& call) {
  const int64_t width = call.attributes.head_width;
  return (width == 64 || width == 128) && cuda::IsMappable(call.inputs[0]) &&
         cuda::IsMappable(call.inputs[1]) && cuda::IsMappable(call.inputs[2]) &&
         cuda::IsMappable(call.grad_output) && cuda::IsMappable(call.output) &&
         cuda::AreAligned(2, call.grad_inputs[0], call.grad_inputs[1], call.grad_inputs[2]) &&
         call.inputs[0].NumElements() > 0 && cuda::RunsSm90Code();
}

size_t Sm90AttentionBackwardBytes(const BackwardCall& call) {
  const Tensor& q = call.inputs[0];
  const int64_t heads = q.width / call.attributes.head_width;
  return static_cast<size_t>(2 * q.batch * heads * PaddedRows(q.rows)) * sizeof(float);
}

absl::Status Sm90AttentionBackward(cudaStream_t stream, const BackwardCall& call,
                                   float* workspace) {
  const Tensor& q = call.inputs[0];
  const AttentionShape shape(q, call.attributes);
  const int64_t padded_rows = PaddedRows(q.rows);
  const int64_t numbers = q.batch * shape.heads * padded_rows;
  float* const logarithms = workspace;
  float* const deltas = workspace + numbers;
  constexpr int64_t kTeams = kPrepareThreads / kFoldedThreads;
  PLUMBLINE_RETURN_IF_ERROR(cuda::LaunchEarly(
      stream, kName, PrepareKernel, static_cast<unsigned>((numbers + kTeams - 1) / kTeams),
      kPrepareThreads, 0, shape, padded_rows, q.batch, View<const bf16>(call.grad_output),
      View<const bf16>(call.output), static_cast<const float*>(call.saved), logarithms, deltas));
  const BackwardProblem problem = {static_cast<int>(q.rows),
                                   static_cast<int>(padded_rows),
                                   shape.heads,
                                   static_cast<int>(q.batch),
                                   0,
                                   shape.scale,
                                   shape.scale_log2e,
                                   logarithms,
                                   deltas,
                                   View<bf16>(Tensor()),
                                   View<bf16>(Tensor())};
  return shape.width == 64 ? LaunchBoth<64>(stream, call, problem)
                           : LaunchBoth<128>(stream, call, problem);
}

}  // namespace plumbline::candidate_cuda
