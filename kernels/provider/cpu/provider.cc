#include <memory>
#include <utility>

#include "kernels/builtin.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline {
namespace {

// The key tile of the attention kernel that PyTorch picks by itself.
constexpr int64_t kDefaultKeyTile = 128;

}  // namespace

void RegisterProviderCpu(Registry& registry) {
  const auto add = [&registry](OpKind op, std::shared_ptr<const Operation> operation) {
    OperationRegistration registration;
    registration.implementation = "provider/default";
    registration.op = op;
    registration.device = DeviceKind::kCpu;
    registration.owner = "pytorch/diffusers";
    registration.status = BindingStatus::kReference;
    registration.operation = std::move(operation);
    // Fails where the registry has these operations already, and is right then.
    registry.Register(std::move(registration)).IgnoreError();
  };
  add(OpKind::kTimeProjection, provider::MakeTimeProjection());
  add(OpKind::kTimeEmbedder, provider::MakeTimeEmbedder());
  add(OpKind::kLinear, provider::MakeLinear());
  add(OpKind::kAdalnProjection, provider::MakeAdalnProjection());
  add(OpKind::kRmsNorm, provider::MakeRmsNorm());
  add(OpKind::kModulatedRmsNorm, provider::MakeModulatedRmsNorm());
  add(OpKind::kRope, provider::MakeRope());
  add(OpKind::kAttention, provider::MakeTiledAttention(kDefaultKeyTile));
  add(OpKind::kGatedResidual, provider::MakeGatedResidual());
  add(OpKind::kResidual, provider::MakeResidual());
  add(OpKind::kSwiGlu, provider::MakeSwiGlu());
  add(OpKind::kScatterRows, provider::MakeScatterRows());
  add(OpKind::kGatherRows, provider::MakeGatherRows());
  add(OpKind::kCast, provider::MakeCast());
  add(OpKind::kGradSum, provider::MakeGradSum());
}

}  // namespace plumbline
