// Operations of the provider that move rows: kScatterRows, kGatherRows and kCast.
//
//   scatter   text(Rt, H), video(Rv, H), audio(Ra, H) and their indices -> (R, H): each source row
//             cast to the output's type, at its index. Backward: the rows back, cast to the
//             source's type.
//   gather    x(R, W), indices(n, 1) -> (n, W). Backward: the rows at their indices, zeros
//   elsewhere. cast      x(R, W) -> (R, W) in the output's type. Backward: the gradient in x's
//   type.
// Rounding: the casts alone. No reductions.
#include <array>
#include <cstring>
#include <initializer_list>

#include "kernels/cpu/call_check.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/provider/cpu/values.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kRowRun = 16;
constexpr std::initializer_list<DType> kFloatTypes = {DType::kBF16, DType::kF32};

// Calls move(row, item) for every row of every batch item, from several threads.
template <typename Move>
void ForEachRow(const ExecutionContext& context, int64_t batch, int64_t rows, Move move) {
  context.threads->ParallelFor(0, batch * rows, kRowRun, [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) move(row % rows, row / rows);
  });
}

int64_t IndexAt(const Tensor& indices, int64_t row) { return *indices.Row<int64_t>(row); }

class ScatterRows : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kScatterRows, call, 2 * kSources, 0);
    if (!check.ok()) return check.status();
    int64_t rows = 0;
    for (int64_t s = 0; s < kSources; ++s) {
      const Tensor& source = call.inputs[s];
      const Tensor& indices = call.inputs[kSources + s];
      rows += source.rows;
      check.Type(kNames[s], source, kFloatTypes)
          .Shape(kNames[s], source, call.output.batch, CallCheck::kAny, call.output.width)
          .Type(kIndexNames[s], indices, {DType::kI64})
          .Shape(kIndexNames[s], indices, 1, source.rows, 1);
    }
    return check.Type("output", call.output, kFloatTypes)
        .Shape("output", call.output, CallCheck::kAny, rows, CallCheck::kAny)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    for (int64_t s = 0; s < kSources; ++s) {
      const Tensor& source = call.inputs[s];
      ForEachRow(context, source.batch, source.rows, [&](int64_t row, int64_t item) {
        ConvertRow(source, row, call.output, IndexAt(call.inputs[kSources + s], row), item);
      });
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (int64_t s = 0; s < kSources; ++s) {
      const Tensor& grad = call.grad_inputs[s];
      if (grad.IsNull()) continue;
      ForEachRow(context, grad.batch, grad.rows, [&](int64_t row, int64_t item) {
        ConvertRow(call.grad_output, IndexAt(call.inputs[kSources + s], row), grad, row, item);
      });
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kSources = 3;
  static constexpr std::array<const char*, kSources> kNames = {"text", "video", "audio"};
  static constexpr std::array<const char*, kSources> kIndexNames = {"text_indices", "video_indices",
                                                                    "audio_indices"};
};

class GatherRows : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kGatherRows, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, kFloatTypes)
        .Type("indices", call.inputs[1], {DType::kI64})
        .Shape("indices", call.inputs[1], 1, CallCheck::kAny, 1)
        .Type("output", call.output, {x.dtype})
        .Shape("output", call.output, x.batch, call.inputs[1].rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& output = call.output;
    ForEachRow(context, output.batch, output.rows, [&](int64_t row, int64_t item) {
      ConvertRow(call.inputs[0], IndexAt(call.inputs[1], row), output, row, item);
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& to = call.grad_inputs[0];
    if (to.IsNull()) return absl::OkStatus();
    const size_t row_bytes = static_cast<size_t>(to.width) * DTypeSize(to.dtype);
    ForEachRow(context, to.batch, to.rows, [&](int64_t row, int64_t item) {
      std::memset(RowBytes(to, row, item), 0, row_bytes);
    });
    const Tensor& grad = call.grad_output;
    ForEachRow(context, grad.batch, grad.rows, [&](int64_t row, int64_t item) {
      ConvertRow(grad, row, to, IndexAt(call.inputs[1], row), item);
    });
    return absl::OkStatus();
  }
};

class Cast : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check(kFamily, OpKind::kCast, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, kFloatTypes)
        .Type("output", call.output, kFloatTypes)
        .Shape("output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Convert(context, call.inputs[0], call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!call.grad_inputs[0].IsNull()) Convert(context, call.grad_output, call.grad_inputs[0]);
    return absl::OkStatus();
  }

 private:
  static void Convert(const ExecutionContext& context, const Tensor& from, const Tensor& to) {
    ForEachRow(context, to.batch, to.rows,
               [&](int64_t row, int64_t item) { ConvertRow(from, row, to, row, item); });
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeScatterRows() { return std::make_shared<ScatterRows>(); }
std::shared_ptr<const Operation> MakeGatherRows() { return std::make_shared<GatherRows>(); }
std::shared_ptr<const Operation> MakeCast() { return std::make_shared<Cast>(); }

}  // namespace plumbline::provider
