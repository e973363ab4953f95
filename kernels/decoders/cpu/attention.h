// kDecoderAttention.
//
//   q, k, v (R, heads * D) -> (R, heads * D); each head of each batch item by itself, no mask
//   s = q k^T / sqrt(D); p = exp(s - max(s)) / sum; y = p v
// Rounding: y, once; with Real = float every operation. Order: products the implementation's, over
// D and R; the softmax sum in the lanes of kernels/cpu/row_reductions.h. A block of kBlock queries
// is one thread's, and which block a row is in changes nothing in its sums.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_ATTENTION_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_ATTENTION_H_

#include <algorithm>
#include <cmath>

#include "kernels/cpu/row_reductions.h"
#include "kernels/decoders/cpu/arithmetic.h"

namespace plumbline::decoders {

template <typename Arithmetic>
class Attention final : public DecoderOperation<Arithmetic, OpKind::kDecoderAttention> {
  using Real = typename Arithmetic::Real;

  static constexpr int64_t kBlock = 48;

 public:
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return static_cast<size_t>(context.threads->num_threads()) * ThreadBytes(call);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& q = call.inputs[0];
    const int64_t rows = q.rows;
    const int64_t head_width = call.attributes.head_width;
    const int64_t heads = q.width / head_width;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
    const Real scale = static_cast<Real>(1.0 / std::sqrt(static_cast<double>(head_width)));
    const size_t thread_bytes = ThreadBytes(call);
    context.threads->ParallelForWithSlot(
        0, q.batch * heads * blocks, 1, [&](int64_t task, int64_t, int slot) {
          Scratch scratch(
              context.workspace.subspan(static_cast<size_t>(slot) * thread_bytes, thread_bytes));
          Real* const p = scratch.Take<Real>(kBlock * rows);
          const absl::Span<uint8_t> product = scratch.TakeBytes(Arithmetic::ProductBytes());
          const int64_t item = task / blocks / heads;
          const int64_t column = task / blocks % heads * head_width;
          const int64_t first = task % blocks * kBlock;
          const int64_t count = std::min(kBlock, rows - first);
          const Tensor& k = call.inputs[1];
          const Tensor& v = call.inputs[2];
          Arithmetic::Multiply(
              {count, rows, head_width},
              {q.Row<float>(first, item) + column, DType::kF32, q.row_stride, 1},
              {k.Row<float>(0, item) + column, DType::kF32, k.row_stride, 1},
              [&](int64_t row, int64_t key, int64_t n, const Real* sums) {
                for (int64_t i = 0; i < n; ++i) p[row * rows + key + i] = sums[i] * scale;
              },
              product, *context.threads);
          for (int64_t i = 0; i < count; ++i) Softmax(p + i * rows, rows);
          Arithmetic::Multiply(
              {count, head_width, rows}, {p, RealType<Real>(), rows, 1},
              {v.Row<float>(0, item) + column, DType::kF32, 1, v.row_stride},
              [&](int64_t row, int64_t channel, int64_t n, const Real* sums) {
                float* const to = call.output.Row<float>(first + row, item) + column + channel;
                for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(sums[i]);
              },
              product, *context.threads);
        });
    return absl::OkStatus();
  }

 private:
  static size_t ThreadBytes(const ForwardCall& call) {
    const int64_t rows = call.inputs[0].rows;
    return Scratch::Bytes<Real>(kBlock * rows) + Arithmetic::ProductBytes();
  }

  static void Softmax(Real* row, int64_t size) {
    const Real maximum = *std::max_element(row, row + size);
    for (int64_t j = 0; j < size; ++j) row[j] = ExpOf(row[j] - maximum);
    const Real sum = SumInLanes<Real>(size, [row](int64_t j) { return row[j]; });
    const Real reciprocal = Real{1} / sum;
    for (int64_t j = 0; j < size; ++j) row[j] *= reciprocal;
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_ATTENTION_H_
