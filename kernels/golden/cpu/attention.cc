// kAttention of the golden.
//
//   q, k, v (R, heads * D) -> (R, heads * D); each head of each batch item by itself, no mask
//   forward   s = q k^T / sqrt(D); p = exp(s - max(s)) / sum; y = p v
//   backward  dv = p^T dy; dp = dy v^T; c = sum of p dp over the keys; ds = p (dp - c) / sqrt(D);
//             dq = ds k; dk = ds^T q
// Rounding: y, dq, dk and dv, once each; everything between stays float64. Order: products that of
// kernels/cpu/gemm.h over D or R; the softmax sum and c in the lanes of
// kernels/cpu/row_reductions.h. A block of kBlock queries (for dk and dv: keys) is one thread's,
// and which block a row is in changes nothing in its sums. Saved: max and 1 / sum of every row and
// head.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/call_check.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/row_reductions.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::golden {
namespace {

constexpr int64_t kBlock = 48;

// One head of one batch item of q, k, v, an output or a gradient.
Tensor Head(const Tensor& tensor, int64_t item, int64_t head, int64_t head_width) {
  Tensor view = tensor.Columns(head * head_width, head_width);
  view.data = view.IsNull() ? nullptr : view.Row<float>(0, item);
  view.batch = 1;
  return view;
}

Tensor RowsOf(const Tensor& tensor, int64_t first, int64_t count) {
  Tensor view = tensor;
  if (!view.IsNull()) view.data = view.Row<float>(first);
  view.rows = count;
  return view;
}

// What the forward hands to the backward about one row of one head.
struct RowStatistics {
  double maximum;
  double reciprocal_sum;
};

// The scratch of one thread: two matrices of kBlock by R, and the workspace of a product.
struct ThreadScratch {
  double* first;
  double* second;
  absl::Span<uint8_t> product;
};

class Attention final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kAttention, call, 3, 0);
    if (!check.ok()) return check.status();
    const Tensor& q = call.inputs[0];
    const int64_t head_width = call.attributes.head_width;
    for (const Tensor& input : call.inputs) {
      check.Type("q, k or v", input, {DType::kF32})
          .Shape("k or v", input, q.batch, q.rows, q.width);
    }
    return check
        .That(head_width > 0 && q.width % head_width == 0,
              "the width of q must be a multiple of head_width")
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, q.batch, q.rows, q.width)
        .status();
  }

  size_t SavedBytes(const ForwardCall& call) const override {
    return Scratch::Bytes<RowStatistics>(Rows(call.inputs[0], call.attributes));
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return ThreadScratchBytes(call.inputs[0].rows, context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return ThreadScratchBytes(call.inputs[0].rows, context) +
           Scratch::Bytes<double>(Rows(call.inputs[0], call.attributes));
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Scratch scratch(context.workspace);
    const int64_t rows = call.inputs[0].rows;
    const int64_t head_width = call.attributes.head_width;
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
    RowStatistics* const saved = static_cast<RowStatistics*>(call.saved);
    ForEachBlock(context, scratch, call.inputs[0], head_width, [&](const Block& block) {
      const auto head = [&](const Tensor& tensor) {
        return Head(tensor, block.item, block.head, head_width);
      };
      const Tensor queries = RowsOf(head(call.inputs[0]), block.first, block.count);
      double* const p = block.scratch.first;
      Multiply(queries, head(call.inputs[1]), block, p, scale);
      for (int64_t i = 0; i < block.count; ++i) {
        double* const row = p + i * rows;
        const double maximum = *std::max_element(row, row + rows);
        for (int64_t j = 0; j < rows; ++j) row[j] = Exp(row[j] - maximum);
        const double sum = SumInLanes<double>(rows, [row](int64_t j) { return row[j]; });
        const double reciprocal = 1.0 / sum;
        for (int64_t j = 0; j < rows; ++j) row[j] *= reciprocal;
        if (saved != nullptr)
          saved[block.first_row_number + i] = RowStatistics{maximum, reciprocal};
      }
      MultiplyInto(p, rows, head(call.inputs[2]), block,
                   RowsOf(head(call.output), block.first, block.count));
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    Scratch scratch(context.workspace);
    double* const corrections = scratch.Take<double>(Rows(call.inputs[0], call.attributes));
    const Scratch for_threads = scratch;
    GradientOfQueries(context, for_threads, call, corrections);
    if (!call.grad_inputs[1].IsNull() || !call.grad_inputs[2].IsNull())
      GradientOfKeysAndValues(context, for_threads, call, corrections);
    return absl::OkStatus();
  }

 private:
  // Rows [first, first + count) of one head, given to one thread.
  struct Block {
    int64_t item;
    int64_t head;
    int64_t first;
    int64_t count;
    // Of the head's row 0, and of `first`, in arrays with one entry for each item, head and row.
    int64_t head_row_number;
    int64_t first_row_number;
    ThreadScratch scratch;
    ThreadPool* threads;
  };

  static int64_t Rows(const Tensor& q, const Attributes& attributes) {
    return q.batch * q.rows * (q.width / attributes.head_width);
  }
  static size_t ThreadScratchBytes(int64_t rows, const ExecutionContext& context) {
    return static_cast<size_t>(context.threads->num_threads()) *
           (2 * Scratch::Bytes<double>(kBlock * rows) + GemmWorkspaceBytes<double>(1));
  }

  template <typename Body>
  static void ForEachBlock(const ExecutionContext& context, Scratch scratch, const Tensor& q,
                           int64_t head_width, const Body& body) {
    const int64_t rows = q.rows;
    const int64_t heads = q.width / head_width;
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
    const size_t matrix_bytes = Scratch::Bytes<double>(kBlock * rows);
    const size_t product_bytes = GemmWorkspaceBytes<double>(1);
    const absl::Span<uint8_t> memory = scratch.TakeBytes(ThreadScratchBytes(rows, context));
    context.threads->ParallelForWithSlot(
        0, q.batch * heads * blocks, 1, [&](int64_t task, int64_t, int slot) {
          Scratch own(memory.subspan(static_cast<size_t>(slot) * (2 * matrix_bytes + product_bytes),
                                     2 * matrix_bytes + product_bytes));
          Block block;
          block.item = task / blocks / heads;
          block.head = task / blocks % heads;
          block.first = task % blocks * kBlock;
          block.count = std::min(kBlock, rows - block.first);
          block.head_row_number = (block.item * heads + block.head) * rows;
          block.first_row_number = block.head_row_number + block.first;
          block.scratch.first = own.Take<double>(kBlock * rows);
          block.scratch.second = own.Take<double>(kBlock * rows);
          block.scratch.product = own.TakeBytes(product_bytes);
          block.threads = context.threads;
          body(block);
        });
  }

  // to(count, R) = scale * a(count, D) b(R, D)^T.
  static void Multiply(const Tensor& a, const Tensor& b, const Block& block, double* to,
                       double scale) {
    Gemm<double>(
        {a.rows, b.rows, a.width}, GemmOperand::Of(a), GemmOperand::Of(b).Transposed(),
        [&](int64_t row, int64_t column, int64_t count, const double* values) {
          for (int64_t i = 0; i < count; ++i) to[row * b.rows + column + i] = values[i] * scale;
        },
        block.scratch.product, *block.threads);
  }

  // to(count, D) = weights(count, R) b(R, D), rounded once.
  static void MultiplyInto(const double* weights, int64_t rows, const Tensor& b, const Block& block,
                           const Tensor& to) {
    Gemm<double>(
        {to.rows, to.width, rows}, GemmOperand{weights, DType::kF64, rows, 1}, GemmOperand::Of(b),
        [&](int64_t row, int64_t column, int64_t count, const double* values) {
          for (int64_t i = 0; i < count; ++i)
            to.Row<float>(row)[column + i] = static_cast<float>(values[i]);
        },
        block.scratch.product, *block.threads);
  }

  // Blocks of queries: the correction c of every row, and dq where it is wanted.
  static void GradientOfQueries(const ExecutionContext& context, const Scratch& scratch,
                                const BackwardCall& call, double* corrections) {
    const int64_t rows = call.inputs[0].rows;
    const int64_t head_width = call.attributes.head_width;
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
    const RowStatistics* const saved = static_cast<const RowStatistics*>(call.saved);
    ForEachBlock(context, scratch, call.inputs[0], head_width, [&](const Block& block) {
      const auto head = [&](const Tensor& tensor) {
        return Head(tensor, block.item, block.head, head_width);
      };
      double* const p = block.scratch.first;
      double* const dp = block.scratch.second;
      Multiply(RowsOf(head(call.inputs[0]), block.first, block.count), head(call.inputs[1]), block,
               p, scale);
      Multiply(RowsOf(head(call.grad_output), block.first, block.count), head(call.inputs[2]),
               block, dp, 1.0);
      for (int64_t i = 0; i < block.count; ++i) {
        const RowStatistics& statistics = saved[block.first_row_number + i];
        double* const p_row = p + i * rows;
        double* const dp_row = dp + i * rows;
        for (int64_t j = 0; j < rows; ++j)
          p_row[j] = Exp(p_row[j] - statistics.maximum) * statistics.reciprocal_sum;
        const double correction =
            SumInLanes<double>(rows, [&](int64_t j) { return p_row[j] * dp_row[j]; });
        corrections[block.first_row_number + i] = correction;
        for (int64_t j = 0; j < rows; ++j) dp_row[j] = p_row[j] * (dp_row[j] - correction) * scale;
      }
      if (call.grad_inputs[0].IsNull()) return;
      MultiplyInto(dp, rows, head(call.inputs[1]), block,
                   RowsOf(head(call.grad_inputs[0]), block.first, block.count));
    });
  }

  // Blocks of keys, everything transposed: row i of a matrix is a key, column j a query.
  static void GradientOfKeysAndValues(const ExecutionContext& context, const Scratch& scratch,
                                      const BackwardCall& call, const double* corrections) {
    const int64_t rows = call.inputs[0].rows;
    const int64_t head_width = call.attributes.head_width;
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
    const RowStatistics* const saved = static_cast<const RowStatistics*>(call.saved);
    ForEachBlock(context, scratch, call.inputs[0], head_width, [&](const Block& block) {
      const auto head = [&](const Tensor& tensor) {
        return Head(tensor, block.item, block.head, head_width);
      };
      const RowStatistics* const statistics = saved + block.head_row_number;
      const double* const correction = corrections + block.head_row_number;
      double* const p = block.scratch.first;
      double* const dp = block.scratch.second;
      Multiply(RowsOf(head(call.inputs[1]), block.first, block.count), head(call.inputs[0]), block,
               p, scale);
      for (int64_t i = 0; i < block.count; ++i) {
        double* const row = p + i * rows;
        for (int64_t j = 0; j < rows; ++j)
          row[j] = Exp(row[j] - statistics[j].maximum) * statistics[j].reciprocal_sum;
      }
      if (!call.grad_inputs[2].IsNull()) {
        MultiplyInto(p, rows, head(call.grad_output), block,
                     RowsOf(head(call.grad_inputs[2]), block.first, block.count));
      }
      if (call.grad_inputs[1].IsNull()) return;
      Multiply(RowsOf(head(call.inputs[2]), block.first, block.count), head(call.grad_output),
               block, dp, 1.0);
      for (int64_t i = 0; i < block.count; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
          double& value = dp[i * rows + j];
          value = p[i * rows + j] * (value - correction[j]) * scale;
        }
      }
      MultiplyInto(dp, rows, head(call.inputs[0]), block,
                   RowsOf(head(call.grad_inputs[1]), block.first, block.count));
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeAttention() { return std::make_shared<Attention>(); }

}  // namespace plumbline::golden
