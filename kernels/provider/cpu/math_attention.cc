// kAttention of the provider, unfused, as PyTorch's math path computes it from bfloat16 inputs: it
// widens them first and rounds nothing before its results. D head width, root = the root of
// 1 / sqrt(D), float32.
//
//   q, k, v(R, heads * D) bfloat16 -> (R, heads * D)
//   forward   s = (q root) (k root)^T; p = exp(s - max) / sum(exp(s - max)); round(p v)
//   backward  dp = dy v^T; ds = p (dp - rowsum(p dp)); dv = round(p^T dy);
//             dq = round((ds (k root)) root); dk = round((ds^T (q root)) root)
// Reductions: products by sgemm, a tile of queries and a tile of keys a call; y and dq add the key
// tiles in order, dk and dv the query tiles in order; sums along a row of scores as in
// row_reductions.h. Each result belongs to one thread, so the threads change no bit.
// Saved for the backward: max, then sum, of every (item, head, row). Of the scores no more than a
// tile of rows is held at a time; the backward computes them again, to the same bits.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/row_reductions.h"
#include "kernels/numerics/elementary.h"
#include "kernels/provider/cpu/attention_head.h"
#include "kernels/provider/cpu/blas.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/workspace.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kTile = 64;

float RootScale(int64_t head_width) {
  return static_cast<float>(std::sqrt(1.0 / std::sqrt(static_cast<double>(head_width))));
}

void Scale(float factor, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}

// Values with one for each (item, head, row).
int64_t RowValues(const Tensor& q, int64_t head_width) { return q.NumElements() / head_width; }

// The softmax's maximum and sum of each row of one head.
struct Statistics {
  float* maximum;
  float* sum;

  static Statistics Of(void* saved, const Tensor& q, const Head& head) {
    float* const maximum = static_cast<float*>(saved);
    return {maximum + head.first_row_value,
            maximum + RowValues(q, head.width) + head.first_row_value};
  }
};

// Tiles of one head, loaded: scaled rows of q and k, rows of v and dy. On one thread, in scratch of
// Floats() values.
class HeadTiles {
 public:
  static int64_t Floats(int64_t width) { return 4 * kTile * width; }

  HeadTiles(const Head& head, float* scratch)
      : head_(head),
        root_(RootScale(head.width)),
        q_(scratch),
        k_(q_ + kTile * head.width),
        v_(k_ + kTile * head.width),
        grad_(v_ + kTile * head.width) {}

  void LoadQ(const Tensor& q, int64_t first, int64_t count) { LoadScaled(q, first, count, q_); }
  void LoadK(const Tensor& k, int64_t first, int64_t count) { LoadScaled(k, first, count, k_); }
  void LoadV(const Tensor& v, int64_t first, int64_t count) {
    LoadHead(v, head_, first, count, v_);
  }
  void LoadGrad(const Tensor& grad, int64_t first, int64_t count) {
    LoadHead(grad, head_, first, count, grad_);
  }

  // s and dp of the loaded queries and keys, rows `stride` apart.
  void Scores(int64_t queries, int64_t keys, float* to, int64_t stride) const {
    Sgemm(queries, keys, head_.width, {q_, head_.width, false}, {k_, head_.width, true}, false, to,
          stride);
  }
  void WeightGradients(int64_t queries, int64_t keys, float* to, int64_t stride) const {
    Sgemm(queries, keys, head_.width, {grad_, head_.width, false}, {v_, head_.width, true}, false,
          to, stride);
  }

  const float* q() const { return q_; }
  const float* k() const { return k_; }
  const float* v() const { return v_; }
  const float* grad() const { return grad_; }
  float root() const { return root_; }

 private:
  void LoadScaled(const Tensor& tensor, int64_t first, int64_t count, float* to) {
    LoadHead(tensor, head_, first, count, to);
    Scale(root_, count * head_.width, to);
  }

  const Head& head_;
  const float root_;
  float* const q_;
  float* const k_;
  float* const v_;
  float* const grad_;
};

// From scores to p, with the statistics of the whole row.
void Normalise(float maximum, float sum, int64_t keys, float* row) {
  for (int64_t j = 0; j < keys; ++j) row[j] = ExpF32(row[j] - maximum) / sum;
}

class MathAttention : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override { return CheckAttention(call); }

  size_t SavedBytes(const ForwardCall& call) const override {
    return 2 * DeltaBytes(call.inputs[0], call.attributes.head_width);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return SlotCount(context) * SlotFloats(call.inputs[0].rows, call.attributes.head_width) *
           sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return AlignUp(DeltaBytes(call.inputs[0], call.attributes.head_width)) +
           SlotCount(context) * SlotFloats(call.inputs[0].rows, call.attributes.head_width) *
               sizeof(float);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& q = call.inputs[0];
    const int64_t width = call.attributes.head_width;
    ForEachHeadTile(context, q, width, kTile,
                    [&](const Head& head, int64_t first, int64_t count, int slot) {
                      QueryTile(call, head, first, count,
                                SlotScratch(context, slot, SlotFloats(q.rows, width)));
                    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& q = call.inputs[0];
    const int64_t width = call.attributes.head_width;
    // rowsum(p dp) of every (item, head, row): the queries' pass writes it, the keys' pass reads
    // it.
    float* const delta = reinterpret_cast<float*>(context.workspace.data());
    ExecutionContext rest = context;
    rest.workspace.remove_prefix(AlignUp(DeltaBytes(q, width)));
    ForEachHeadTile(rest, q, width, kTile,
                    [&](const Head& head, int64_t first, int64_t count, int slot) {
                      QueryGradient(call, head, first, count, delta + head.first_row_value,
                                    SlotScratch(rest, slot, SlotFloats(q.rows, width)));
                    });
    if (call.grad_inputs[1].IsNull() && call.grad_inputs[2].IsNull()) return absl::OkStatus();
    ForEachHeadTile(rest, q, width, kTile,
                    [&](const Head& head, int64_t first, int64_t count, int slot) {
                      KeyAndValueGradients(call, head, first, count, delta + head.first_row_value,
                                           SlotScratch(rest, slot, SlotFloats(q.rows, width)));
                    });
    return absl::OkStatus();
  }

 private:
  static size_t DeltaBytes(const Tensor& q, int64_t head_width) {
    return static_cast<size_t>(RowValues(q, head_width)) * sizeof(float);
  }

  // The loaded tiles, two tiles of results, and two tiles of whole rows of scores.
  static int64_t SlotFloats(int64_t rows, int64_t width) {
    return HeadTiles::Floats(width) + 2 * kTile * width + 2 * kTile * rows;
  }

  // Outputs of queries [first, first + count).
  static void QueryTile(const ForwardCall& call, const Head& head, int64_t first, int64_t count,
                        float* scratch) {
    const int64_t width = head.width;
    const int64_t rows = call.inputs[0].rows;
    HeadTiles tiles(head, scratch);
    float* const outputs = scratch + HeadTiles::Floats(width);
    float* const p = outputs + kTile * width;

    tiles.LoadQ(call.inputs[0], first, count);
    for (int64_t key = 0; key < rows; key += kTile) {
      const int64_t keys = std::min(kTile, rows - key);
      tiles.LoadK(call.inputs[1], key, keys);
      tiles.Scores(count, keys, p + key, rows);
    }
    for (int64_t i = 0; i < count; ++i) {
      float* const row = p + i * rows;
      const float maximum = *std::max_element(row, row + rows);
      const float sum =
          SumInLanes<float>(rows, [&](int64_t j) { return ExpF32(row[j] - maximum); });
      Normalise(maximum, sum, rows, row);
      if (call.saved == nullptr) continue;
      const Statistics statistics = Statistics::Of(call.saved, call.inputs[0], head);
      statistics.maximum[first + i] = maximum;
      statistics.sum[first + i] = sum;
    }
    for (int64_t key = 0; key < rows; key += kTile) {
      const int64_t keys = std::min(kTile, rows - key);
      tiles.LoadV(call.inputs[2], key, keys);
      Sgemm(count, width, keys, {p + key, rows, false}, {tiles.v(), width, false}, key > 0, outputs,
            width);
    }
    StoreHead(outputs, head, first, count, call.output);
  }

  // delta, and dq if it is wanted, of queries [first, first + count).
  static void QueryGradient(const BackwardCall& call, const Head& head, int64_t first,
                            int64_t count, float* delta, float* scratch) {
    const int64_t width = head.width;
    const int64_t rows = call.inputs[0].rows;
    const Statistics statistics =
        Statistics::Of(const_cast<void*>(call.saved), call.inputs[0], head);
    HeadTiles tiles(head, scratch);
    float* const sums = scratch + HeadTiles::Floats(width);
    float* const p = sums + kTile * width;
    float* const ds = p + kTile * rows;

    tiles.LoadQ(call.inputs[0], first, count);
    tiles.LoadGrad(call.grad_output, first, count);
    for (int64_t key = 0; key < rows; key += kTile) {
      const int64_t keys = std::min(kTile, rows - key);
      tiles.LoadK(call.inputs[1], key, keys);
      tiles.LoadV(call.inputs[2], key, keys);
      tiles.Scores(count, keys, p + key, rows);
      tiles.WeightGradients(count, keys, ds + key, rows);
    }
    for (int64_t i = 0; i < count; ++i) {
      float* const p_row = p + i * rows;
      float* const ds_row = ds + i * rows;
      Normalise(statistics.maximum[first + i], statistics.sum[first + i], rows, p_row);
      delta[first + i] = RowDot(p_row, ds_row, rows);
      for (int64_t j = 0; j < rows; ++j) ds_row[j] = p_row[j] * (ds_row[j] - delta[first + i]);
    }
    if (call.grad_inputs[0].IsNull()) return;
    for (int64_t key = 0; key < rows; key += kTile) {
      const int64_t keys = std::min(kTile, rows - key);
      tiles.LoadK(call.inputs[1], key, keys);
      Sgemm(count, width, keys, {ds + key, rows, false}, {tiles.k(), width, false}, key > 0, sums,
            width);
    }
    Scale(tiles.root(), count * width, sums);
    StoreHead(sums, head, first, count, call.grad_inputs[0]);
  }

  // dk and dv of keys [first, first + count).
  static void KeyAndValueGradients(const BackwardCall& call, const Head& head, int64_t first,
                                   int64_t count, const float* delta, float* scratch) {
    const int64_t width = head.width;
    const int64_t rows = call.inputs[0].rows;
    const Statistics statistics =
        Statistics::Of(const_cast<void*>(call.saved), call.inputs[0], head);
    HeadTiles tiles(head, scratch);
    float* const key_sums = scratch + HeadTiles::Floats(width);
    float* const value_sums = key_sums + kTile * width;
    float* const p = value_sums + kTile * width;
    float* const ds = p + kTile * count;

    tiles.LoadK(call.inputs[1], first, count);
    tiles.LoadV(call.inputs[2], first, count);
    for (int64_t query = 0; query < rows; query += kTile) {
      const int64_t queries = std::min(kTile, rows - query);
      tiles.LoadQ(call.inputs[0], query, queries);
      tiles.LoadGrad(call.grad_output, query, queries);
      tiles.Scores(queries, count, p, count);
      tiles.WeightGradients(queries, count, ds, count);
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t row = query + i;
        float* const p_row = p + i * count;
        float* const ds_row = ds + i * count;
        Normalise(statistics.maximum[row], statistics.sum[row], count, p_row);
        for (int64_t j = 0; j < count; ++j) ds_row[j] = p_row[j] * (ds_row[j] - delta[row]);
      }
      Sgemm(count, width, queries, {ds, count, true}, {tiles.q(), width, false}, query > 0,
            key_sums, width);
      Sgemm(count, width, queries, {p, count, true}, {tiles.grad(), width, false}, query > 0,
            value_sums, width);
    }
    Scale(tiles.root(), count * width, key_sums);
    if (!call.grad_inputs[1].IsNull()) StoreHead(key_sums, head, first, count, call.grad_inputs[1]);
    if (!call.grad_inputs[2].IsNull())
      StoreHead(value_sums, head, first, count, call.grad_inputs[2]);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeMathAttention() { return std::make_shared<MathAttention>(); }

}  // namespace plumbline::provider
