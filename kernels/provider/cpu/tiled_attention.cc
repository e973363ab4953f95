// kAttention of the provider, as PyTorch's fused kernels compute it: online softmax over tiles of
// keys; D head width, scale = float32(1 / sqrt(D)).
//
//   q, k, v(R, heads * D) bfloat16 -> (R, heads * D)
//   forward   over the key tiles in order: s = q k^T; m = the running maximum of s;
//             p = exp((s - m) scale), not normalised; l = l exp((m_before - m) scale) + sum(p);
//             o = o exp((m_before - m) scale) + round(p) v, all float32; round(o / l)
//   backward  attention_backward.h
// Reductions: products by sgemm, a tile of queries and a tile of keys a call; the sum of p along a
// tile as in row_reductions.h. A query tile belongs to one thread, so the threads change no bit.
// Saved for the backward: lse = m scale + log(l) of every (item, head, row).
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cpu/row_reductions.h"
#include "kernels/numerics/elementary.h"
#include "kernels/provider/cpu/attention_backward.h"
#include "kernels/provider/cpu/attention_head.h"
#include "kernels/provider/cpu/blas.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kQueryTile = 128;

class TiledAttention : public Operation {
 public:
  TiledAttention(int64_t key_tile, ScoreGradient score_gradient)
      : key_tile_(key_tile), score_gradient_(score_gradient) {}

  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override { return CheckAttention(call); }

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(call.inputs[0].NumElements() / call.attributes.head_width) *
           sizeof(float);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return SlotCount(context) * ForwardFloats(call.attributes.head_width) * sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return AttentionBackwardWorkspaceBytes(call, context, kQueryTile, key_tile_);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const int64_t width = call.attributes.head_width;
    ForEachHeadTile(context, call.inputs[0], width, kQueryTile,
                    [&](const Head& head, int64_t first, int64_t count, int slot) {
                      QueryTile(call, head, first, count,
                                SlotScratch(context, slot, ForwardFloats(width)));
                    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    AttentionBackward(context, call, score_gradient_, kQueryTile, key_tile_);
    return absl::OkStatus();
  }

 private:
  int64_t ForwardFloats(int64_t head_width) const {
    return 2 * kQueryTile * head_width + 2 * key_tile_ * head_width + kQueryTile * key_tile_;
  }

  // The state of the online softmax of one query.
  struct Running {
    float maximum = -std::numeric_limits<float>::infinity();
    float sum = 0;
  };

  // Turns a row of scores into the rounded p, and returns what the sums so far are multiplied by.
  static float SoftmaxRow(float scale, int64_t keys, float* row, Running* running) {
    float maximum = running->maximum;
    for (int64_t j = 0; j < keys; ++j) maximum = std::max(maximum, row[j]);
    const float correction = ExpF32((running->maximum - maximum) * scale);
    for (int64_t j = 0; j < keys; ++j) row[j] = ExpF32((row[j] - maximum) * scale);
    running->maximum = maximum;
    running->sum = running->sum * correction + RowSum(row, keys);
    for (int64_t j = 0; j < keys; ++j) row[j] = RoundThroughBf16(row[j]);
    return correction;
  }

  // Queries [first, first + count) of one head.
  void QueryTile(const ForwardCall& call, const Head& head, int64_t first, int64_t count,
                 float* scratch) const {
    const int64_t width = head.width;
    const int64_t rows = call.inputs[0].rows;
    const float scale = SoftmaxScale(width);
    float* const q = scratch;
    float* const outputs = q + kQueryTile * width;
    float* const k = outputs + kQueryTile * width;
    float* const v = k + key_tile_ * width;
    float* const p = v + key_tile_ * width;
    std::array<Running, kQueryTile> running;

    LoadHead(call.inputs[0], head, first, count, q);
    std::fill_n(outputs, count * width, 0.0f);
    for (int64_t key = 0; key < rows; key += key_tile_) {
      const int64_t keys = std::min(key_tile_, rows - key);
      LoadHead(call.inputs[1], head, key, keys, k);
      LoadHead(call.inputs[2], head, key, keys, v);
      Sgemm(count, keys, width, {q, width, false}, {k, width, true}, false, p, key_tile_);
      for (int64_t i = 0; i < count; ++i) {
        const float correction = SoftmaxRow(scale, keys, p + i * key_tile_, &running[i]);
        float* const row = outputs + i * width;
        for (int64_t c = 0; c < width; ++c) row[c] *= correction;
      }
      Sgemm(count, width, keys, {p, key_tile_, false}, {v, width, false}, true, outputs, width);
    }
    for (int64_t i = 0; i < count; ++i) {
      float* const row = outputs + i * width;
      for (int64_t c = 0; c < width; ++c) row[c] /= running[i].sum;
    }
    StoreHead(outputs, head, first, count, call.output);
    if (call.saved == nullptr) return;
    float* const lse = static_cast<float*>(call.saved) + head.first_row_value + first;
    for (int64_t i = 0; i < count; ++i) lse[i] = running[i].maximum * scale + Log(running[i].sum);
  }

  const int64_t key_tile_;
  const ScoreGradient score_gradient_;
};

}  // namespace

std::shared_ptr<const Operation> MakeTiledAttention(int64_t key_tile,
                                                    ScoreGradient score_gradient) {
  return std::make_shared<TiledAttention>(key_tile, score_gradient);
}

}  // namespace plumbline::provider
