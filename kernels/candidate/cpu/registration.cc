#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/candidate/cpu/adaln_projection.h"
#include "kernels/candidate/cpu/attention.h"
#include "kernels/candidate/cpu/decoders.h"
#include "kernels/candidate/cpu/fused.h"
#include "kernels/candidate/cpu/linear.h"
#include "kernels/candidate/cpu/residual.h"
#include "kernels/candidate/cpu/rms_norm.h"
#include "kernels/candidate/cpu/rope.h"
#include "kernels/candidate/cpu/row_movement.h"
#include "kernels/candidate/cpu/swiglu.h"
#include "kernels/candidate/cpu/timestep.h"
#include "kernels/must_register.h"

namespace plumbline {
namespace {

constexpr char kImplementation[] = "candidate";
constexpr char kOwner[] = "plumbline";

void RegisterOperations(Registry& registry) {
  const auto add = [&registry](OpKind op, std::shared_ptr<const Operation> operation) {
    OperationRegistration registration;
    registration.implementation = kImplementation;
    registration.op = op;
    registration.device = DeviceKind::kCpu;
    registration.owner = kOwner;
    registration.status = BindingStatus::kBound;
    registration.operation = std::move(operation);
    MustRegister(registry, std::move(registration));
  };
  add(OpKind::kTimeProjection, candidate::MakeTimeProjection());
  add(OpKind::kTimeEmbedder, candidate::MakeTimeEmbedder());
  add(OpKind::kLinear, candidate::MakeLinear());
  add(OpKind::kAdalnProjection, candidate::MakeAdalnProjection());
  add(OpKind::kRmsNorm, candidate::MakeRmsNorm());
  add(OpKind::kModulatedRmsNorm, candidate::MakeModulatedRmsNorm());
  add(OpKind::kRope, candidate::MakeRope());
  add(OpKind::kAttention, candidate::MakeAttention());
  add(OpKind::kGatedResidual, candidate::MakeGatedResidual());
  add(OpKind::kResidual, candidate::MakeResidual());
  add(OpKind::kSwiGlu, candidate::MakeSwiGlu());
  add(OpKind::kScatterRows, candidate::MakeScatterRows());
  add(OpKind::kGatherRows, candidate::MakeGatherRows());
  add(OpKind::kCast, candidate::MakeCast());
  add(OpKind::kGradSum, candidate::MakeGradSum());
  for (auto& [op, operation] : candidate::MakeDecoderOperations()) add(op, operation);
}

void RegisterFusedOperations(Registry& registry) {
  const auto add = [&registry](std::string name, std::vector<FusedNode> nodes,
                               std::shared_ptr<const FusedOperation> operation) {
    FusedRegistration registration;
    registration.implementation = kImplementation;
    registration.name = std::move(name);
    registration.device = DeviceKind::kCpu;
    registration.nodes = std::move(nodes);
    registration.operation = std::move(operation);
    MustRegister(registry, std::move(registration));
  };
  add("candidate/residual_norm",
      {{"residual_attn", OpKind::kGatedResidual}, {"norm2", OpKind::kModulatedRmsNorm}},
      candidate::MakeFusedResidualNorm());
  add("candidate/qk_norm_rope",
      {{"q_norm", OpKind::kRmsNorm},
       {"k_norm", OpKind::kRmsNorm},
       {"rope_q", OpKind::kRope},
       {"rope_k", OpKind::kRope}},
      candidate::MakeFusedNormRope());
  add("candidate/gate_up_swiglu", {{"ffn_gate_up", OpKind::kLinear}, {"swiglu", OpKind::kSwiGlu}},
      candidate::MakeFusedGateUpSwiGlu());
}

}  // namespace

void RegisterCandidateCpu(Registry& registry) {
  RegisterOperations(registry);
  RegisterFusedOperations(registry);
}

}  // namespace plumbline
