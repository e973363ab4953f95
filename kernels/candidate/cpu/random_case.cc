#include "kernels/candidate/cpu/random_case.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/builtin.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/registry.h"

namespace plumbline {
namespace {

constexpr uint64_t kSharedSeed = 1001;  // of what batch items share
constexpr int64_t kTableRows = 7;       // one more than the indices name
constexpr DType kBF16 = DType::kBF16;
constexpr DType kF32 = DType::kF32;

class CaseBuilder {
 public:
  CaseBuilder(const CaseSizes& sizes, std::string name, OpKind op) : sizes_(sizes) {
    case_.node.name = std::move(name);
    case_.node.op = op;
  }

  CaseBuilder& Attribute(const Attributes& attributes) {
    case_.node.attributes = attributes;
    return *this;
  }

  // An input of `rows` rows for each batch item; `per_row` where they are the node's rows.
  CaseBuilder& Values(const std::string& name, DType dtype, int64_t rows, int64_t width,
                      bool per_row = true) {
    const int64_t items = case_.batched ? static_cast<int64_t>(sizes_.item_seeds.size()) : 1;
    const Tensor tensor = Allocate(dtype, items, rows, width);
    Fill(name, tensor, {2, 0});
    return Input(tensor, true, per_row);
  }

  // Columns of a wider table, at `first`.
  CaseBuilder& Table(const std::string& name, int64_t first, int64_t width) {
    const Tensor table = Allocate(kBF16, 1, kTableRows, 3 * width);
    FillShared(name, table, {1, 0});
    return Input(table.Columns(first, width), true, false);
  }

  // Indices of table rows; the last row of the table is named by none.
  CaseBuilder& TableIndex() {
    const Tensor index = Allocate(DType::kI64, 1, sizes_.rows, 1);
    for (int64_t row = 0; row < sizes_.rows; ++row) {
      *index.Row<int64_t>(row) = (row * row + row / 3) % (kTableRows - 1);
    }
    return Input(index, false, false);
  }

  CaseBuilder& Indices(const std::vector<int64_t>& values) {
    const Tensor index = Allocate(DType::kI64, 1, static_cast<int64_t>(values.size()), 1);
    std::copy(values.begin(), values.end(), index.Row<int64_t>(0));
    return Input(index, false, false);
  }

  CaseBuilder& Positions() {
    const Tensor positions = Allocate(DType::kF64, 1, sizes_.rows, 3);
    for (int64_t row = 0; row < sizes_.rows; ++row) {
      double* position = positions.Row<double>(row);
      position[0] = static_cast<double>(row) * 5 / 3;
      position[1] = 1.0 + static_cast<double>(row % 7) * 3.3;
      position[2] = 31.5 - static_cast<double>(row % 11) * 2.9;
    }
    return Input(positions, false, false);
  }

  CaseBuilder& Parameter(const std::string& name, DType dtype, int64_t rows, int64_t width,
                         SyntheticRecipe recipe) {
    const Tensor parameter = Allocate(dtype, 1, rows, width);
    FillShared(name, parameter, recipe);
    case_.node.parameters.push_back(parameter);
    return *this;
  }

  CaseBuilder& NoBatch() {
    case_.batched = false;
    return *this;
  }
  CaseBuilder& RowsDepend() {
    case_.rows_independent = false;
    return *this;
  }

  RandomCase Build(DType dtype, int64_t rows, int64_t width) {
    const int64_t items = case_.batched ? static_cast<int64_t>(sizes_.item_seeds.size()) : 1;
    case_.node.output = Tensor::Dense(nullptr, dtype, items, rows, width);
    case_.node.grad_output = Allocate(dtype, items, rows, width);
    Fill("upstream", case_.node.grad_output, {1, 0});
    return std::move(case_);
  }

 private:
  CaseBuilder& Input(const Tensor& tensor, bool has_gradient, bool per_row) {
    case_.node.inputs.push_back(tensor);
    case_.node.input_has_gradient.push_back(has_gradient);
    case_.per_row.push_back(per_row);
    return *this;
  }

  Tensor Allocate(DType dtype, int64_t batch, int64_t rows, int64_t width) {
    case_.memory.push_back(std::make_unique<HostTensor>(dtype, batch, rows, width));
    return case_.memory.back()->view();
  }

  void Fill(const std::string& name, const Tensor& tensor, SyntheticRecipe recipe) {
    for (int64_t item = 0; item < tensor.batch; ++item) {
      FillItem(name, case_.batched ? sizes_.item_seeds[item] : kSharedSeed, tensor, item, recipe);
    }
  }
  void FillShared(const std::string& name, const Tensor& tensor, SyntheticRecipe recipe) {
    FillItem(name, kSharedSeed, tensor, 0, recipe);
  }
  void FillItem(const std::string& name, uint64_t seed, const Tensor& tensor, int64_t item,
                SyntheticRecipe recipe) {
    const std::string full_name = absl::StrCat(case_.node.name, ".", name);
    const size_t count = static_cast<size_t>(tensor.rows * tensor.width);
    if (tensor.dtype == kBF16) {
      FillSynthetic(full_name, seed, recipe, 0,
                    absl::MakeSpan(tensor.Row<bfloat16>(0, item), count));
    } else {
      FillSynthetic(full_name, seed, recipe, 0, absl::MakeSpan(tensor.Row<float>(0, item), count));
    }
  }

  const CaseSizes& sizes_;
  RandomCase case_;
};

void AddLinears(const CaseSizes& sizes, std::vector<RandomCase>& cases) {
  const int64_t outputs = 2 * sizes.hidden + 3;
  struct Form {
    const char* name;
    DType x, weight;
    bool bias;
  };
  for (const Form& form : {Form{"linear", kBF16, kBF16, false},
                           {"linear_bias", kF32, kBF16, true},
                           {"linear_float32", kF32, kF32, true},
                           {"linear_widening", kBF16, kF32, false}}) {
    CaseBuilder builder(sizes, form.name, OpKind::kLinear);
    builder.Values("x", form.x, sizes.rows, sizes.hidden)
        .Parameter("weight", form.weight, outputs, sizes.hidden, {0.3, 0});
    if (form.bias) builder.Parameter("bias", form.weight, 1, outputs, {1, 0});
    cases.push_back(builder.Build(form.weight, sizes.rows, outputs));
  }
  cases.push_back(CaseBuilder(sizes, "adaln_projection", OpKind::kAdalnProjection)
                      .NoBatch()
                      .Values("temb", kF32, sizes.rows, sizes.hidden)
                      .Parameter("weight", kBF16, outputs, sizes.hidden, {0.3, 0})
                      .Parameter("bias", kBF16, 1, outputs, {1, 0})
                      .Build(kBF16, sizes.rows, outputs));
  const int64_t middle = sizes.hidden + 5;
  cases.push_back(CaseBuilder(sizes, "time_embedder", OpKind::kTimeEmbedder)
                      .NoBatch()
                      .Values("features", kF32, sizes.rows, sizes.hidden)
                      .Parameter("linear_1.weight", kF32, middle, sizes.hidden, {0.3, 0})
                      .Parameter("linear_1.bias", kF32, 1, middle, {0.5, 0})
                      .Parameter("linear_2.weight", kF32, outputs, middle, {0.3, 0})
                      .Parameter("linear_2.bias", kF32, 1, outputs, {0.5, 0})
                      .Build(kF32, sizes.rows, outputs));
}

void AddRowOperations(const CaseSizes& sizes, std::vector<RandomCase>& cases) {
  const int64_t width = sizes.heads * sizes.head_width;
  Attributes attributes;
  attributes.epsilon = 1e-5f;
  attributes.head_width = sizes.head_width;
  attributes.rotary_frequencies = sizes.frequencies;
  attributes.rotary_theta = 10000;
  const auto begin = [&](const char* name, OpKind op) {
    return std::move(CaseBuilder(sizes, name, op).Attribute(attributes));
  };
  cases.push_back(begin("rms_norm", OpKind::kRmsNorm)
                      .Values("x", kBF16, sizes.rows, sizes.hidden)
                      .Parameter("weight", kBF16, 1, sizes.hidden, {0.5, 1})
                      .Build(kBF16, sizes.rows, sizes.hidden));
  cases.push_back(begin("head_norm", OpKind::kRmsNorm)
                      .Values("x", kBF16, sizes.rows, width)
                      .Parameter("weight", kBF16, 1, sizes.head_width, {0.5, 1})
                      .Build(kBF16, sizes.rows, width));
  cases.push_back(begin("modulated_norm", OpKind::kModulatedRmsNorm)
                      .Values("x", kBF16, sizes.rows, sizes.hidden)
                      .Table("scale", 0, sizes.hidden)
                      .Table("shift", 5, sizes.hidden)
                      .TableIndex()
                      .Parameter("weight", kBF16, 1, sizes.hidden, {0.5, 1})
                      .Build(kBF16, sizes.rows, sizes.hidden));
  cases.push_back(begin("rope", OpKind::kRope)
                      .Values("x", kBF16, sizes.rows, width)
                      .Positions()
                      .Build(kBF16, sizes.rows, width));
  cases.push_back(begin("attention", OpKind::kAttention)
                      .RowsDepend()
                      .Values("q", kBF16, sizes.rows, width)
                      .Values("k", kBF16, sizes.rows, width)
                      .Values("v", kBF16, sizes.rows, width)
                      .Build(kBF16, sizes.rows, width));
  cases.push_back(begin("gated_residual", OpKind::kGatedResidual)
                      .Values("x", kBF16, sizes.rows, sizes.hidden)
                      .Values("branch", kBF16, sizes.rows, sizes.hidden)
                      .Table("gate", 3, sizes.hidden)
                      .TableIndex()
                      .Build(kBF16, sizes.rows, sizes.hidden));
  cases.push_back(begin("residual", OpKind::kResidual)
                      .Values("x", kBF16, sizes.rows, sizes.hidden)
                      .Values("branch", kBF16, sizes.rows, sizes.hidden)
                      .Build(kBF16, sizes.rows, sizes.hidden));
  cases.push_back(begin("swiglu", OpKind::kSwiGlu)
                      .Values("gate_up", kBF16, sizes.rows, 2 * sizes.hidden)
                      .Build(kBF16, sizes.rows, sizes.hidden));
}

void AddMovements(const CaseSizes& sizes, std::vector<RandomCase>& cases) {
  // A permutation of the packed rows, cut into the three sources.
  std::vector<int64_t> order(sizes.rows);
  for (int64_t i = 0; i < sizes.rows; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [](int64_t a, int64_t b) { return a * 7 % 13 < b * 7 % 13; });
  const int64_t text = sizes.rows / 3;
  const int64_t video = sizes.rows / 2;
  const int64_t audio = sizes.rows - text - video;
  const auto text_end = order.begin() + text;
  const auto video_end = text_end + video;
  cases.push_back(CaseBuilder(sizes, "scatter", OpKind::kScatterRows)
                      .RowsDepend()
                      .Values("text", kBF16, text, sizes.hidden, false)
                      .Values("video", kF32, video, sizes.hidden, false)
                      .Values("audio", kF32, audio, sizes.hidden, false)
                      .Indices({order.begin(), text_end})
                      .Indices({text_end, video_end})
                      .Indices({video_end, order.end()})
                      .Build(kBF16, sizes.rows, sizes.hidden));
  cases.push_back(CaseBuilder(sizes, "gather", OpKind::kGatherRows)
                      .RowsDepend()
                      .Values("x", kF32, sizes.rows, sizes.hidden)
                      .Indices({order.begin(), video_end})
                      .Build(kF32, text + video, sizes.hidden));
  cases.push_back(CaseBuilder(sizes, "widen", OpKind::kCast)
                      .Values("x", kBF16, sizes.rows, sizes.hidden)
                      .Build(kF32, sizes.rows, sizes.hidden));
  cases.push_back(CaseBuilder(sizes, "narrow", OpKind::kCast)
                      .Values("x", kF32, sizes.rows, sizes.hidden)
                      .Build(kBF16, sizes.rows, sizes.hidden));
}

}  // namespace

std::vector<RandomCase> MakeRandomCases(const CaseSizes& sizes) {
  std::vector<RandomCase> cases;
  AddLinears(sizes, cases);
  AddRowOperations(sizes, cases);
  AddMovements(sizes, cases);
  return cases;
}

const Operation& CandidateOperation(OpKind op) {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    RegisterCandidateCpu(*filled);
    return filled;
  }();
  return *registry->Find("candidate", op, "", DeviceKind::kCpu).value()->operation;
}

}  // namespace plumbline
