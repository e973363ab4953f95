#include "kernels/provider/cpu/attention_backward.h"

#include <algorithm>

#include "kernels/cpu/row_reductions.h"
#include "kernels/numerics/elementary.h"
#include "kernels/provider/cpu/attention_head.h"
#include "kernels/provider/cpu/blas.h"
#include "kernels/provider/cpu/values.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

// The arithmetic of one call on one thread, in scratch of Floats() values.
class BackwardTiles {
 public:
  static int64_t Floats(int64_t query_tile, int64_t key_tile, int64_t width) {
    return query_tile * (3 * width + 1) + key_tile * 4 * width + 2 * query_tile * key_tile;
  }

  BackwardTiles(const BackwardCall& call, ScoreGradient score_gradient, const Head& head,
                int64_t query_tile, int64_t key_tile, float* scratch)
      : call_(call),
        score_gradient_(score_gradient),
        head_(head),
        query_tile_(query_tile),
        key_tile_(key_tile),
        scale_(SoftmaxScale(head.width)),
        lse_(static_cast<const float*>(call.saved) + head.first_row_value) {
    const auto take = [&scratch](int64_t count) {
      float* const part = scratch;
      scratch += count;
      return part;
    };
    q_ = take(query_tile * head.width);
    grad_ = take(query_tile * head.width);
    query_sum_ = take(query_tile * head.width);
    delta_ = take(query_tile);
    k_ = take(key_tile * head.width);
    v_ = take(key_tile * head.width);
    key_sum_ = take(key_tile * head.width);
    value_sum_ = take(key_tile * head.width);
    p_ = take(query_tile * key_tile);
    ds_ = take(query_tile * key_tile);
  }

  // dq of queries [first, first + count).
  void QueryGradient(int64_t first, int64_t count) {
    const int64_t width = head_.width;
    const int64_t rows = call_.inputs[0].rows;
    LoadQueries(first, count);
    for (int64_t key = 0; key < rows; key += key_tile_) {
      const int64_t keys = std::min(key_tile_, rows - key);
      LoadKeys(key, keys);
      ScoreGradients(first, count, keys);
      Sgemm(count, width, keys, {ds_, key_tile_, false}, {k_, width, false}, key > 0, query_sum_,
            width);
    }
    ScaleSums(count, query_sum_);
    StoreHead(query_sum_, head_, first, count, call_.grad_inputs[0]);
  }

  // dk and dv of keys [first, first + count).
  void KeyAndValueGradients(int64_t first, int64_t count) {
    const int64_t width = head_.width;
    const int64_t rows = call_.inputs[0].rows;
    LoadKeys(first, count);
    for (int64_t query = 0; query < rows; query += query_tile_) {
      const int64_t queries = std::min(query_tile_, rows - query);
      LoadQueries(query, queries);
      ScoreGradients(query, queries, count);
      Sgemm(count, width, queries, {ds_, key_tile_, true}, {q_, width, false}, query > 0, key_sum_,
            width);
      Sgemm(count, width, queries, {p_, key_tile_, true}, {grad_, width, false}, query > 0,
            value_sum_, width);
    }
    ScaleSums(count, key_sum_);
    if (!call_.grad_inputs[1].IsNull())
      StoreHead(key_sum_, head_, first, count, call_.grad_inputs[1]);
    if (!call_.grad_inputs[2].IsNull())
      StoreHead(value_sum_, head_, first, count, call_.grad_inputs[2]);
  }

 private:
  void LoadQueries(int64_t first, int64_t count) {
    LoadHead(call_.inputs[0], head_, first, count, q_);
    LoadHead(call_.grad_output, head_, first, count, grad_);
    // The outputs are needed for delta alone; query_sum_ holds nothing yet.
    LoadHead(call_.output, head_, first, count, query_sum_);
    for (int64_t i = 0; i < count; ++i)
      delta_[i] = RowDot(grad_ + i * head_.width, query_sum_ + i * head_.width, head_.width);
  }

  void LoadKeys(int64_t first, int64_t count) {
    LoadHead(call_.inputs[1], head_, first, count, k_);
    LoadHead(call_.inputs[2], head_, first, count, v_);
  }

  // round(p) and ds of the loaded queries and keys.
  void ScoreGradients(int64_t first_query, int64_t queries, int64_t keys) {
    const int64_t width = head_.width;
    Sgemm(queries, keys, width, {q_, width, false}, {k_, width, true}, false, p_, key_tile_);
    Sgemm(queries, keys, width, {grad_, width, false}, {v_, width, true}, false, ds_, key_tile_);
    for (int64_t i = 0; i < queries; ++i) {
      float* const p_row = p_ + i * key_tile_;
      float* const ds_row = ds_ + i * key_tile_;
      const float lse = lse_[first_query + i];
      const float delta = delta_[i];
      for (int64_t j = 0; j < keys; ++j) p_row[j] = ExpF32(p_row[j] * scale_ - lse);
      const bool from_rounded = score_gradient_ == ScoreGradient::kFromRoundedWeights;
      if (from_rounded) RoundValues(DType::kBF16, p_row, keys);
      for (int64_t j = 0; j < keys; ++j) ds_row[j] = p_row[j] * (ds_row[j] - delta);
      if (score_gradient_ != ScoreGradient::kUnscaled) {
        for (int64_t j = 0; j < keys; ++j) ds_row[j] *= scale_;
      }
      RoundValues(DType::kBF16, ds_row, keys);
      if (!from_rounded) RoundValues(DType::kBF16, p_row, keys);
    }
  }

  // The scale that the score gradients were not given.
  void ScaleSums(int64_t count, float* sums) const {
    if (score_gradient_ != ScoreGradient::kUnscaled) return;
    for (int64_t i = 0; i < count * head_.width; ++i) sums[i] *= scale_;
  }

  const BackwardCall& call_;
  const ScoreGradient score_gradient_;
  const Head head_;
  const int64_t query_tile_;
  const int64_t key_tile_;
  const float scale_;
  const float* const lse_;
  float* q_;
  float* grad_;
  float* query_sum_;
  float* delta_;
  float* k_;
  float* v_;
  float* key_sum_;
  float* value_sum_;
  float* p_;
  float* ds_;
};

}  // namespace

size_t AttentionBackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext& context,
                                       int64_t query_tile, int64_t key_tile) {
  return SlotCount(context) *
         BackwardTiles::Floats(query_tile, key_tile, call.attributes.head_width) * sizeof(float);
}

void AttentionBackward(const ExecutionContext& context, const BackwardCall& call,
                       ScoreGradient score_gradient, int64_t query_tile, int64_t key_tile) {
  const int64_t width = call.attributes.head_width;
  const int64_t floats = BackwardTiles::Floats(query_tile, key_tile, width);
  const auto tiles = [&](const Head& head, int slot) {
    return BackwardTiles(call, score_gradient, head, query_tile, key_tile,
                         SlotScratch(context, slot, floats));
  };
  if (!call.grad_inputs[0].IsNull()) {
    ForEachHeadTile(context, call.inputs[0], width, query_tile,
                    [&](const Head& head, int64_t first, int64_t count, int slot) {
                      tiles(head, slot).QueryGradient(first, count);
                    });
  }
  if (!call.grad_inputs[1].IsNull() || !call.grad_inputs[2].IsNull()) {
    ForEachHeadTile(context, call.inputs[0], width, key_tile,
                    [&](const Head& head, int64_t first, int64_t count, int slot) {
                      tiles(head, slot).KeyAndValueGradients(first, count);
                    });
  }
}

}  // namespace plumbline::provider
