#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/candidate/cuda/fused.h"
#include "kernels/candidate/cuda/operations.h"
#include "kernels/cuda/shared_operations.h"
#include "kernels/decoders/cuda/operations.h"
#include "kernels/must_register.h"

namespace plumbline {
namespace {

void RegisterFusedOperations(Registry& registry) {
  const auto add = [&registry](std::string name, std::vector<FusedNode> nodes,
                               std::shared_ptr<const FusedOperation> operation) {
    FusedRegistration registration;
    registration.implementation = candidate_cuda::kImplementation;
    registration.name = std::move(name);
    registration.device = DeviceKind::kCuda;
    registration.nodes = std::move(nodes);
    registration.operation = std::move(operation);
    MustRegister(registry, std::move(registration));
  };
  add("candidate/residual_norm",
      {{"residual_attn", OpKind::kGatedResidual}, {"norm2", OpKind::kModulatedRmsNorm}},
      candidate_cuda::MakeFusedResidualNorm());
  add("candidate/qk_norm_rope",
      {{"q_norm", OpKind::kRmsNorm},
       {"k_norm", OpKind::kRmsNorm},
       {"rope_q", OpKind::kRope},
       {"rope_k", OpKind::kRope}},
      candidate_cuda::MakeFusedNormRope());
}

}  // namespace

void RegisterCandidateCuda(Registry& registry) {
  const auto add = [&registry](OpKind op, std::shared_ptr<const Operation> operation) {
    OperationRegistration registration;
    registration.implementation = candidate_cuda::kImplementation;
    registration.op = op;
    registration.device = DeviceKind::kCuda;
    registration.owner = "plumbline";
    registration.status = BindingStatus::kBound;
    registration.operation = std::move(operation);
    MustRegister(registry, std::move(registration));
  };
  add(OpKind::kTimeProjection, cuda::MakeTimeProjection(candidate_cuda::kImplementation));
  add(OpKind::kTimeEmbedder, candidate_cuda::MakeTimeEmbedder());
  add(OpKind::kLinear, candidate_cuda::MakeLinear());
  add(OpKind::kAdalnProjection, candidate_cuda::MakeAdalnProjection());
  add(OpKind::kRmsNorm, candidate_cuda::MakeRmsNorm());
  add(OpKind::kModulatedRmsNorm, candidate_cuda::MakeModulatedRmsNorm());
  add(OpKind::kRope, candidate_cuda::MakeRope());
  add(OpKind::kAttention, candidate_cuda::MakeAttention());
  add(OpKind::kGatedResidual, candidate_cuda::MakeGatedResidual());
  add(OpKind::kResidual, cuda::MakeResidual(candidate_cuda::kImplementation, Precision::kMixed));
  add(OpKind::kSwiGlu, candidate_cuda::MakeSwiGlu());
  add(OpKind::kScatterRows,
      cuda::MakeScatterRows(candidate_cuda::kImplementation, Precision::kMixed));
  add(OpKind::kGatherRows,
      cuda::MakeGatherRows(candidate_cuda::kImplementation, Precision::kMixed));
  add(OpKind::kCast, cuda::MakeCast(candidate_cuda::kImplementation, Precision::kMixed));
  add(OpKind::kGradSum, cuda::MakeGradSum(candidate_cuda::kImplementation, Precision::kMixed));
  add(OpKind::kDecoderLinear, candidate_cuda::MakeLinear());
  for (auto& [op, operation] :
       decoders_cuda::MakeOperations({candidate_cuda::kImplementation, Precision::kMixed,
                                      decoders_cuda::Arithmetic::kFloat32})) {
    add(op, operation);
  }
  RegisterFusedOperations(registry);
}

}  // namespace plumbline
