#include "worker/h3/synthetic_weights.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/numerics/synthetic.h"

namespace plumbline::h3 {
namespace {

// Values that are made at a time to be hashed: they stay in the processor's cache.
constexpr int64_t kHashChunk = 1 << 16;

class SyntheticWeights : public WeightSource {
 public:
  SyntheticWeights(const TransformerConfig& config, uint64_t seed)
      : WeightSource(config), seed_(seed) {}

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    const ParameterSpec* parameter = Find(name);
    if (parameter == nullptr) {
      return absl::NotFoundError(absl::StrCat("the model has no parameter ", Quoted(name)));
    }
    const Tensor shape = ParameterView(nullptr, parameter->dtype, parameter->shape);
    PLUMBLINE_ASSIGN_OR_RETURN(
        WeightView view, AllocateHostTensor(shape.dtype, shape.batch, shape.rows, shape.width));
    Fill(*parameter, 0, parameter->NumElements(), view.tensor.data);
    return view;
  }

  bool IsMadeOnDevice(absl::string_view name, const Device& device) const override {
    return device.kind() != DeviceKind::kCpu;
  }
  absl::Status MakeOnDevice(absl::string_view name, Device& device,
                            const Tensor& to) const override {
    const ParameterSpec* parameter = Find(name);
    if (parameter == nullptr) {
      return absl::NotFoundError(absl::StrCat("the model has no parameter ", Quoted(name)));
    }
    return device.FillSynthetic(name, seed_, TransformerRecipe(parameter->name, parameter->shape),
                                to);
  }

  std::string Description() const override { return absl::StrCat("synthetic, seed ", seed_); }

  absl::StatusOr<std::string> Identity() const override {
    return absl::StrCat("synthetic:", Sha256Hex(CanonicalConfigJson(config())), ":", seed_);
  }

 private:
  absl::Status Hash(const ParameterSpec& parameter, Sha256* hash) const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const HostTensor chunk,
                               AllocateHostTensor(parameter.dtype, 1, 1, kHashChunk));
    const int64_t size = parameter.NumElements();
    for (int64_t begin = 0; begin < size; begin += kHashChunk) {
      const int64_t count = std::min(kHashChunk, size - begin);
      Fill(parameter, begin, count, chunk.tensor.data);
      hash->Update(chunk.Bytes().first(count * DTypeSize(parameter.dtype)));
    }
    return absl::OkStatus();
  }

  // Writes values [begin, begin + count) of a parameter, in its type.
  void Fill(const ParameterSpec& parameter, int64_t begin, int64_t count, void* to) const {
    const SyntheticRecipe recipe = TransformerRecipe(parameter.name, parameter.shape);
    if (parameter.dtype == DType::kF32) {
      FillSynthetic(parameter.name, seed_, recipe, begin,
                    absl::MakeSpan(static_cast<float*>(to), count));
    } else {
      FillSynthetic(parameter.name, seed_, recipe, begin,
                    absl::MakeSpan(static_cast<bfloat16*>(to), count));
    }
  }

  const uint64_t seed_;
};

}  // namespace

std::shared_ptr<const WeightSource> MakeSyntheticWeights(const TransformerConfig& config,
                                                         uint64_t seed) {
  return std::make_shared<SyntheticWeights>(config, seed);
}

}  // namespace plumbline::h3
