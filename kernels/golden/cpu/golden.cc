#include <map>
#include <memory>
#include <utility>

#include "kernels/builtin.h"
#include "kernels/golden/cpu/operations.h"
#include "kernels/must_register.h"

namespace plumbline {

void RegisterGoldenCpu(Registry& registry) {
  std::map<OpKind, std::shared_ptr<const Operation>> operations = {
      {OpKind::kTimeProjection, golden::MakeTimeProjection()},
      {OpKind::kTimeEmbedder, golden::MakeTimeEmbedder()},
      {OpKind::kLinear, golden::MakeLinear()},
      {OpKind::kAdalnProjection, golden::MakeAdalnProjection()},
      {OpKind::kRmsNorm, golden::MakeRmsNorm()},
      {OpKind::kModulatedRmsNorm, golden::MakeModulatedRmsNorm()},
      {OpKind::kRope, golden::MakeRope()},
      {OpKind::kAttention, golden::MakeAttention()},
      {OpKind::kGatedResidual, golden::MakeGatedResidual()},
      {OpKind::kResidual, golden::MakeResidual()},
      {OpKind::kSwiGlu, golden::MakeSwiGlu()},
      {OpKind::kScatterRows, golden::MakeScatterRows()},
      {OpKind::kGatherRows, golden::MakeGatherRows()},
      {OpKind::kCast, golden::MakeCast()},
      {OpKind::kGradSum, golden::MakeGradSum()},
  };
  operations.merge(golden::MakeDecoderOperations());
  for (const auto& [op, operation] : operations) {
    OperationRegistration registration;
    registration.implementation = golden::kImplementation;
    registration.op = op;
    registration.owner = "plumbline";
    registration.status = BindingStatus::kReference;
    registration.operation = operation;
    MustRegister(registry, std::move(registration));
  }
}

}  // namespace plumbline
