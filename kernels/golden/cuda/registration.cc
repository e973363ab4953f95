#include <map>
#include <memory>
#include <utility>

#include "kernels/builtin.h"
#include "kernels/cuda/shared_operations.h"
#include "kernels/decoders/cuda/operations.h"
#include "kernels/golden/cuda/operations.h"
#include "kernels/must_register.h"

namespace plumbline {

void RegisterGoldenCuda(Registry& registry) {
  constexpr const char* kGolden = golden_cuda::kImplementation;
  std::map<OpKind, std::shared_ptr<const Operation>> operations = {
      {OpKind::kTimeProjection, golden_cuda::MakeTimeProjection()},
      {OpKind::kTimeEmbedder, golden_cuda::MakeTimeEmbedder()},
      {OpKind::kLinear, golden_cuda::MakeLinear()},
      {OpKind::kAdalnProjection, golden_cuda::MakeAdalnProjection()},
      {OpKind::kRmsNorm, golden_cuda::MakeRmsNorm()},
      {OpKind::kModulatedRmsNorm, golden_cuda::MakeModulatedRmsNorm()},
      {OpKind::kRope, golden_cuda::MakeRope()},
      {OpKind::kAttention, golden_cuda::MakeAttention()},
      {OpKind::kGatedResidual, golden_cuda::MakeGatedResidual()},
      {OpKind::kResidual, cuda::MakeResidual(kGolden, Precision::kFloat32)},
      {OpKind::kSwiGlu, golden_cuda::MakeSwiGlu()},
      {OpKind::kScatterRows, cuda::MakeScatterRows(kGolden, Precision::kFloat32)},
      {OpKind::kGatherRows, cuda::MakeGatherRows(kGolden, Precision::kFloat32)},
      {OpKind::kCast, cuda::MakeCast(kGolden, Precision::kFloat32)},
      {OpKind::kGradSum, cuda::MakeGradSum(kGolden, Precision::kFloat32)},
      {OpKind::kDecoderLinear, golden_cuda::MakeLinear()},
  };
  operations.merge(decoders_cuda::MakeOperations(
      {kGolden, Precision::kFloat32, decoders_cuda::Arithmetic::kFloat64}));
  for (const auto& [op, operation] : operations) {
    OperationRegistration registration;
    registration.implementation = kGolden;
    registration.op = op;
    registration.device = DeviceKind::kCuda;
    registration.owner = "plumbline";
    registration.status = BindingStatus::kReference;
    registration.operation = operation;
    MustRegister(registry, std::move(registration));
  }
}

}  // namespace plumbline
