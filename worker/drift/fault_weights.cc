#include "worker/drift/fault_weights.h"

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::drift {
namespace {

using h3::HostTensor;
using h3::WeightView;

// Query, key and value, as the native layout orders them.
constexpr std::array<absl::string_view, 3> kProjections = {"attn.to_q.weight", "attn.to_k.weight",
                                                           "attn.to_v.weight"};

// A block of head_dim rows of one projection.
struct HeadOf {
  size_t projection;
  int64_t head;
};

// Rearranges the heads of one block's projections: `from` says which head stands at a place.
class RearrangedHeads : public h3::WeightSource {
 public:
  RearrangedHeads(const h3::WeightSource& base, int64_t block, std::string fault,
                  std::function<HeadOf(HeadOf)> from)
      : WeightSource(base.config()),
        base_(base),
        prefix_(h3::BlockPrefix(block)),
        fault_(std::move(fault)),
        from_(std::move(from)) {}

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    for (size_t i = 0; i < kProjections.size(); ++i) {
      if (name == absl::StrCat(prefix_, kProjections[i])) return Rearranged(i);
    }
    return base_.Get(name);
  }
  bool IsMadeOnDevice(absl::string_view name, const Device& device) const override {
    for (absl::string_view projection : kProjections) {
      if (name == absl::StrCat(prefix_, projection)) return false;
    }
    return base_.IsMadeOnDevice(name, device);
  }
  absl::Status MakeOnDevice(absl::string_view name, Device& device,
                            const Tensor& to) const override {
    return base_.MakeOnDevice(name, device, to);
  }
  std::string Description() const override {
    return absl::StrCat(base_.Description(), ", fault ", fault_);
  }
  absl::StatusOr<std::string> Identity() const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string identity, base_.Identity());
    return absl::StrCat(identity, "+", fault_);
  }

 protected:
  absl::Status Hash(const h3::ParameterSpec& parameter, Sha256* hash) const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const WeightView view, Get(parameter.name));
    hash->Update(view.Bytes());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<WeightView> Rearranged(size_t projection) const {
    std::array<WeightView, kProjections.size()> views;
    for (size_t i = 0; i < kProjections.size(); ++i) {
      PLUMBLINE_ASSIGN_OR_RETURN(views[i], base_.Get(absl::StrCat(prefix_, kProjections[i])));
    }
    const Tensor& like = views[projection].tensor;
    PLUMBLINE_ASSIGN_OR_RETURN(
        HostTensor result, h3::AllocateHostTensor(like.dtype, like.batch, like.rows, like.width));
    const size_t head_bytes = like.NumBytes() / config().num_attention_heads;
    for (int64_t head = 0; head < config().num_attention_heads; ++head) {
      const HeadOf source = from_({projection, head});
      std::memcpy(static_cast<char*>(result.tensor.data) + head * head_bytes,
                  views[source.projection].Bytes().data() + source.head * head_bytes, head_bytes);
    }
    return result;
  }

  const h3::WeightSource& base_;
  const std::string prefix_;
  const std::string fault_;
  const std::function<HeadOf(HeadOf)> from_;
};

absl::Status NeedHeads(const h3::WeightSource& base) {
  if (base.config().num_attention_heads > 1) return absl::OkStatus();
  return FieldError("inject", "heads can be rearranged only where there are several",
                    "a checkpoint with 2 or more attention heads");
}

}  // namespace

absl::StatusOr<std::unique_ptr<h3::WeightSource>> MakePermutedHeads(const h3::WeightSource& base,
                                                                    int64_t block) {
  PLUMBLINE_RETURN_IF_ERROR(NeedHeads(base));
  const int64_t heads = base.config().num_attention_heads;
  const auto next_head = [heads](HeadOf place) -> HeadOf {
    if (kProjections[place.projection] == "attn.to_v.weight") return place;
    return {place.projection, (place.head + 1) % heads};
  };
  return std::make_unique<RearrangedHeads>(base, block, "qk-heads", next_head);
}

absl::StatusOr<std::unique_ptr<h3::WeightSource>> MakeInterleavedQkv(const h3::WeightSource& base,
                                                                     int64_t block) {
  PLUMBLINE_RETURN_IF_ERROR(NeedHeads(base));
  const int64_t heads = base.config().num_attention_heads;
  // Place i of the fused weight, in heads, holds projection i mod 3 of head i / 3.
  const auto third = [heads](HeadOf place) -> HeadOf {
    const int64_t fused = static_cast<int64_t>(place.projection) * heads + place.head;
    return {static_cast<size_t>(fused % 3), fused / 3};
  };
  return std::make_unique<RearrangedHeads>(base, block, "native-qkv", third);
}

}  // namespace plumbline::drift
