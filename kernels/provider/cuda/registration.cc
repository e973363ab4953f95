#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/cuda/shared_operations.h"
#include "kernels/decoders/cuda/operations.h"
#include "kernels/must_register.h"
#include "kernels/provider/cuda/operations.h"

namespace plumbline {
namespace {

using provider_cuda::GemmPath;
using provider_cuda::TiledKernel;
using Operations = std::map<OpKind, std::shared_ptr<const Operation>>;

Operations DefaultOperations() {
  constexpr const char* kFamily = provider_cuda::kFamily;
  Operations operations = {
      {OpKind::kTimeProjection, cuda::MakeTimeProjection(kFamily)},
      {OpKind::kTimeEmbedder, provider_cuda::MakeTimeEmbedder(GemmPath::kCublas)},
      {OpKind::kLinear, provider_cuda::MakeLinear(GemmPath::kCublas)},
      {OpKind::kAdalnProjection, provider_cuda::MakeAdalnProjection(GemmPath::kCublas)},
      {OpKind::kRmsNorm, provider_cuda::MakeRmsNorm()},
      {OpKind::kModulatedRmsNorm, provider_cuda::MakeModulatedRmsNorm()},
      {OpKind::kRope, provider_cuda::MakeRope()},
      {OpKind::kAttention, provider_cuda::MakeTiledAttention(TiledKernel::kDefault)},
      {OpKind::kGatedResidual, provider_cuda::MakeGatedResidual()},
      {OpKind::kResidual, cuda::MakeResidual(kFamily, Precision::kMixed)},
      {OpKind::kSwiGlu, provider_cuda::MakeSwiGlu()},
      {OpKind::kScatterRows, cuda::MakeScatterRows(kFamily, Precision::kMixed)},
      {OpKind::kGatherRows, cuda::MakeGatherRows(kFamily, Precision::kMixed)},
      {OpKind::kCast, cuda::MakeCast(kFamily, Precision::kMixed)},
      {OpKind::kGradSum, cuda::MakeGradSum(kFamily, Precision::kMixed)},
      {OpKind::kDecoderLinear, provider_cuda::MakeAutocastLinear(GemmPath::kCublas)},
  };
  operations.merge(decoders_cuda::MakeOperations(
      {kFamily, Precision::kMixed, decoders_cuda::Arithmetic::kAutocast}));
  return operations;
}

// Registers `shared` with the operations of `changed` in place of its own.
void RegisterVariant(Registry& registry, const std::string& implementation, GemmPath path,
                     const Operations& shared, Operations changed) {
  const auto add = [&](OpKind op, std::shared_ptr<const Operation> operation,
                       std::vector<std::string> nodes) {
    OperationRegistration registration;
    registration.implementation = implementation;
    registration.op = op;
    registration.device = DeviceKind::kCuda;
    registration.owner = "pytorch/diffusers";
    registration.status = BindingStatus::kReference;
    registration.operation = std::move(operation);
    registration.nodes = std::move(nodes);
    MustRegister(registry, std::move(registration));
  };
  changed.insert(shared.begin(), shared.end());
  for (auto& [op, operation] : changed) add(op, std::move(operation), {});
  add(OpKind::kDecoderLinear, provider_cuda::MakeAutocastConvolution(path), {"post_quant_conv"});
}

}  // namespace

void RegisterProviderCuda(Registry& registry) {
  const Operations shared = DefaultOperations();
  const auto attention = [](std::shared_ptr<const Operation> operation) {
    return Operations{{OpKind::kAttention, std::move(operation)}};
  };
  RegisterVariant(registry, "provider/default", GemmPath::kCublas, shared, {});
  RegisterVariant(registry, "provider/sdpa-flash", GemmPath::kCublas, shared,
                  attention(provider_cuda::MakeTiledAttention(TiledKernel::kFlash)));
  RegisterVariant(registry, "provider/sdpa-efficient", GemmPath::kCublas, shared,
                  attention(provider_cuda::MakeTiledAttention(TiledKernel::kEfficient)));
  RegisterVariant(registry, "provider/sdpa-math", GemmPath::kCublas, shared,
                  attention(provider_cuda::MakeMathAttention()));
  RegisterVariant(
      registry, "provider/blas-cublaslt", GemmPath::kCublasLt, shared,
      {{OpKind::kTimeEmbedder, provider_cuda::MakeTimeEmbedder(GemmPath::kCublasLt)},
       {OpKind::kLinear, provider_cuda::MakeLinear(GemmPath::kCublasLt)},
       {OpKind::kDecoderLinear, provider_cuda::MakeAutocastLinear(GemmPath::kCublasLt)},
       {OpKind::kAdalnProjection, provider_cuda::MakeAdalnProjection(GemmPath::kCublasLt)}});
}

}  // namespace plumbline
