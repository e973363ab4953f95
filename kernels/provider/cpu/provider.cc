#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernels/builtin.h"
#include "kernels/must_register.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline {
namespace {

using Operations = std::map<OpKind, std::shared_ptr<const Operation>>;

Operations DefaultOperations() {
  Operations operations = {
      {OpKind::kTimeProjection, provider::MakeTimeProjection()},
      {OpKind::kTimeEmbedder, provider::MakeTimeEmbedder(provider::GemmPath::kWholeSum)},
      {OpKind::kLinear, provider::MakeLinear(provider::GemmPath::kWholeSum)},
      {OpKind::kAdalnProjection, provider::MakeAdalnProjection(provider::GemmPath::kWholeSum)},
      {OpKind::kRmsNorm, provider::MakeRmsNorm()},
      {OpKind::kModulatedRmsNorm, provider::MakeModulatedRmsNorm()},
      {OpKind::kRope, provider::MakeRope()},
      {OpKind::kAttention, provider::MakeTiledAttention(128, provider::ScoreGradient::kScaled)},
      {OpKind::kGatedResidual, provider::MakeGatedResidual()},
      {OpKind::kResidual, provider::MakeResidual()},
      {OpKind::kSwiGlu, provider::MakeSwiGlu()},
      {OpKind::kScatterRows, provider::MakeScatterRows()},
      {OpKind::kGatherRows, provider::MakeGatherRows()},
      {OpKind::kCast, provider::MakeCast()},
      {OpKind::kGradSum, provider::MakeGradSum()},
  };
  operations.merge(provider::MakeDecoderOperations());
  return operations;
}

// Registers `shared` with the operations of `changed` in place of its own.
void RegisterVariant(Registry& registry, const std::string& implementation,
                     const Operations& shared, Operations changed) {
  changed.insert(shared.begin(), shared.end());
  for (auto& [op, operation] : changed) {
    OperationRegistration registration;
    registration.implementation = implementation;
    registration.op = op;
    registration.device = DeviceKind::kCpu;
    registration.owner = "pytorch/diffusers";
    registration.status = BindingStatus::kReference;
    registration.operation = std::move(operation);
    MustRegister(registry, std::move(registration));
  }
}

}  // namespace

void RegisterProviderCpu(Registry& registry) {
  const Operations shared = DefaultOperations();
  const auto attention = [](std::shared_ptr<const Operation> operation) {
    return Operations{{OpKind::kAttention, std::move(operation)}};
  };
  RegisterVariant(registry, "provider/default", shared, {});
  RegisterVariant(registry, "provider/sdpa-flash", shared,
                  attention(provider::MakeTiledAttention(64, provider::ScoreGradient::kUnscaled)));
  RegisterVariant(
      registry, "provider/sdpa-efficient", shared,
      attention(provider::MakeTiledAttention(32, provider::ScoreGradient::kFromRoundedWeights)));
  RegisterVariant(registry, "provider/sdpa-math", shared, attention(provider::MakeMathAttention()));
  constexpr provider::GemmPath kSplit = provider::GemmPath::kSplitSum;
  RegisterVariant(registry, "provider/blas-cublaslt", shared,
                  {{OpKind::kTimeEmbedder, provider::MakeTimeEmbedder(kSplit)},
                   {OpKind::kLinear, provider::MakeLinear(kSplit)},
                   {OpKind::kDecoderLinear, provider::MakeLinear(kSplit)},
                   {OpKind::kAdalnProjection, provider::MakeAdalnProjection(kSplit)}});
}

}  // namespace plumbline
