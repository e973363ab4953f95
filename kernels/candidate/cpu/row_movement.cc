#include "kernels/candidate/cpu/row_movement.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/candidate/cpu/convert.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/cpu/call_check.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::candidate {
namespace {

constexpr std::initializer_list<DType> kFloatTypes = {DType::kBF16, DType::kF32};

class ScatterRows final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kScatterRows, call, 2 * kSources.size(), 0);
    if (!check.ok()) return check.status();
    const Tensor& first = call.inputs[0];
    int64_t rows = 0;
    for (size_t i = 0; i < kSources.size(); ++i) {
      const Tensor& source = call.inputs[i];
      const Tensor& indices = call.inputs[kSources.size() + i];
      const std::string indices_name = absl::StrCat(kSources[i], "_indices");
      check.Type(kSources[i], source, kFloatTypes)
          .Shape(kSources[i], source, first.batch, CallCheck::kAny, first.width)
          .Type(indices_name, indices, {DType::kI64})
          .Shape(indices_name, indices, 1, source.rows, 1);
      rows += source.rows;
    }
    return check.Type("the output", call.output, kFloatTypes)
        .Shape("the output", call.output, first.batch, rows, first.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    for (size_t i = 0; i < kSources.size(); ++i) {
      const Tensor& source = call.inputs[i];
      const Tensor& indices = call.inputs[kSources.size() + i];
      ParallelRows(*context.threads, source.batch, source.rows, [&](int64_t item, int64_t row) {
        ConvertRow(source, item, row, call.output, item, *indices.Row<int64_t>(row));
      });
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    for (size_t i = 0; i < kSources.size(); ++i) {
      const Tensor& grad_source = call.grad_inputs[i];
      if (grad_source.IsNull()) continue;
      const Tensor& indices = call.inputs[kSources.size() + i];
      ParallelRows(
          *context.threads, grad_source.batch, grad_source.rows, [&](int64_t item, int64_t row) {
            ConvertRow(call.grad_output, item, *indices.Row<int64_t>(row), grad_source, item, row);
          });
    }
    return absl::OkStatus();
  }

 private:
  static constexpr std::array<const char*, 3> kSources = {"text", "video", "audio"};
};

class GatherRows final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kGatherRows, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, kFloatTypes)
        .Type("indices", call.inputs[1], {DType::kI64})
        .Shape("indices", call.inputs[1], 1, CallCheck::kAny, 1)
        .Type("the output", call.output, {x.dtype})
        .Shape("the output", call.output, x.batch, call.inputs[1].rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const Tensor& indices = call.inputs[1];
    ParallelRows(*context.threads, x.batch, indices.rows, [&](int64_t item, int64_t row) {
      ConvertRow(x, item, *indices.Row<int64_t>(row), call.output, item, row);
    });
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& grad_x = call.grad_inputs[0];
    const Tensor& indices = call.inputs[1];
    if (grad_x.IsNull()) return absl::OkStatus();
    const int64_t element_bytes = static_cast<int64_t>(DTypeSize(grad_x.dtype));
    ParallelRows(*context.threads, grad_x.batch, grad_x.rows, [&](int64_t item, int64_t row) {
      char* to = static_cast<char*>(grad_x.data) +
                 (item * grad_x.batch_stride + row * grad_x.row_stride) * element_bytes;
      std::memset(to, 0, static_cast<size_t>(grad_x.width * element_bytes));
    });
    ParallelRows(*context.threads, grad_x.batch, indices.rows, [&](int64_t item, int64_t row) {
      ConvertRow(call.grad_output, item, row, grad_x, item, *indices.Row<int64_t>(row));
    });
    return absl::OkStatus();
  }
};

class Cast final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kCast, call, 1, 0);
    if (!check.ok()) return check.status();
    const Tensor& x = call.inputs[0];
    return check.Type("x", x, kFloatTypes)
        .Type("the output", call.output, kFloatTypes)
        .Shape("the output", call.output, x.batch, x.rows, x.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    ConvertRows(*context.threads, call.inputs[0], call.output);
    return absl::OkStatus();
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (!call.grad_inputs[0].IsNull()) {
      ConvertRows(*context.threads, call.grad_output, call.grad_inputs[0]);
    }
    return absl::OkStatus();
  }
};

class GradSum final : public Operation {
 public:
  Precision precision() const override { return Precision::kMixed; }

  absl::Status Check(const ForwardCall& call) const override {
    CallCheck check("candidate", OpKind::kGradSum, call, 2, 0);
    if (!check.ok()) return check.status();
    const Tensor& a = call.inputs[0];
    return check.Type("a", a, kFloatTypes)
        .Type("b", call.inputs[1], {a.dtype})
        .Shape("b", call.inputs[1], a.batch, a.rows, a.width)
        .Type("the output", call.output, {a.dtype})
        .Shape("the output", call.output, a.batch, a.rows, a.width)
        .status();
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& a = call.inputs[0];
    const Tensor& b = call.inputs[1];
    ParallelRows(*context.threads, a.batch, a.rows, [&](int64_t item, int64_t row) {
      if (a.dtype == DType::kBF16) {
        const bfloat16* left = a.Row<bfloat16>(row, item);
        const bfloat16* right = b.Row<bfloat16>(row, item);
        bfloat16* to = call.output.Row<bfloat16>(row, item);
        for (int64_t i = 0; i < a.width; ++i) {
          to[i] = RoundToBf16(WidenBf16(left[i]) + WidenBf16(right[i]));
        }
      } else {
        const float* left = a.Row<float>(row, item);
        const float* right = b.Row<float>(row, item);
        float* to = call.output.Row<float>(row, item);
        for (int64_t i = 0; i < a.width; ++i) to[i] = left[i] + right[i];
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeScatterRows() { return std::make_shared<ScatterRows>(); }
std::shared_ptr<const Operation> MakeGatherRows() { return std::make_shared<GatherRows>(); }
std::shared_ptr<const Operation> MakeCast() { return std::make_shared<Cast>(); }
std::shared_ptr<const Operation> MakeGradSum() { return std::make_shared<GradSum>(); }

}  // namespace plumbline::candidate
