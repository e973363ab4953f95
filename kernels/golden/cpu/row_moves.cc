// kScatterRows, kGatherRows and kCast of the golden. In float32 throughout they move rows and round
// nothing.
//
//   scatter: text(Rt, H), video(Rv, H), audio(Ra, H) and their indices -> (R, H), each row at its
//            index. Backward: each source's rows of dy.
//   gather:  x(R, W), indices(n, 1) -> (n, W). Backward: dy's rows at the indices, zeros elsewhere.
//   cast:    x(R, W) -> (R, W). Backward: dy.
#include <algorithm>

#include "kernels/cpu/call_check.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/golden/cpu/rows.h"

namespace plumbline::golden {
namespace {

// to[row] = from[index of row], for every row of `to`.
void TakeRows(const Tensor& from, const Tensor& index, const Tensor& to, ThreadPool& threads) {
  ForEachRow(threads, to.batch, to.rows, [&](int64_t item, int64_t row) {
    std::copy_n(from.Row<float>(*index.Row<int64_t>(row), item), to.width,
                to.Row<float>(row, item));
  });
}

// to[index of row] = from[row], for every row of `from`.
void PutRows(const Tensor& from, const Tensor& index, const Tensor& to, ThreadPool& threads) {
  ForEachRow(threads, from.batch, from.rows, [&](int64_t item, int64_t row) {
    std::copy_n(from.Row<float>(row, item), from.width,
                to.Row<float>(*index.Row<int64_t>(row), item));
  });
}

class ScatterRows final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kScatterRows, call, 6, 0);
    if (!check.ok()) return check.status();
    static constexpr const char* kNames[] = {"text", "video", "audio"};
    static constexpr const char* kIndexNames[] = {"text_indices", "video_indices", "audio_indices"};
    const Tensor& output = call.output;
    check.Type("output", output, {DType::kF32});
    int64_t rows = 0;
    for (size_t i = 0; i < kSources; ++i) {
      const Tensor& source = call.inputs[i];
      const Tensor& indices = call.inputs[kSources + i];
      check.Type(kNames[i], source, {DType::kF32})
          .Shape(kNames[i], source, output.batch, CallCheck::kAny, output.width)
          .Type(kIndexNames[i], indices, {DType::kI64})
          .Shape(kIndexNames[i], indices, 1, source.rows, 1);
      rows += source.rows;
    }
    return check
        .That(rows == output.rows, "the output must have as many rows as the three inputs together")
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    for (size_t i = 0; i < kSources; ++i)
      PutRows(call.inputs[i], call.inputs[kSources + i], call.output, *context.threads);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (size_t i = 0; i < kSources; ++i) {
      if (call.grad_inputs[i].IsNull()) continue;
      TakeRows(call.grad_output, call.inputs[kSources + i], call.grad_inputs[i], *context.threads);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kSources = 3;
};

class GatherRows final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kGatherRows, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    const Tensor& indices = call.inputs[1];
    return check.Type("x", x, {DType::kF32})
        .Type("indices", indices, {DType::kI64})
        .Shape("indices", indices, 1, CallCheck::kAny, 1)
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, indices.rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    TakeRows(call.inputs[0], call.inputs[1], call.output, *context.threads);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& grad_x = call.grad_inputs[0];
    if (grad_x.IsNull()) return absl::OkStatus();
    ForEachRow(*context.threads, grad_x.batch, grad_x.rows, [&](int64_t item, int64_t row) {
      std::fill_n(grad_x.Row<float>(row, item), grad_x.width, 0.0f);
    });
    PutRows(call.grad_output, call.inputs[1], grad_x, *context.threads);
    return absl::OkStatus();
  }
};

class Cast final : public Operation {
 public:
  Precision precision() const override { return Precision::kFloat32; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kImplementation, OpKind::kCast, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, {DType::kF32})
        .Type("output", call.output, {DType::kF32})
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Copy(call.inputs[0], call.output, *context.threads);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!call.grad_inputs[0].IsNull())
      Copy(call.grad_output, call.grad_inputs[0], *context.threads);
    return absl::OkStatus();
  }

 private:
  static void Copy(const Tensor& from, const Tensor& to, ThreadPool& threads) {
    ForEachRow(threads, to.batch, to.rows, [&](int64_t item, int64_t row) {
      std::copy_n(from.Row<float>(row, item), to.width, to.Row<float>(row, item));
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeScatterRows() { return std::make_shared<ScatterRows>(); }
std::shared_ptr<const Operation> MakeGatherRows() { return std::make_shared<GatherRows>(); }
std::shared_ptr<const Operation> MakeCast() { return std::make_shared<Cast>(); }

}  // namespace plumbline::golden
