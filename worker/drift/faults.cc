#include "worker/drift/faults.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"
#include "worker/drift/fault_operations.h"
#include "worker/drift/fault_weights.h"

namespace plumbline::drift {
namespace {

constexpr absl::string_view kBlockReplay = "block-replay";
constexpr absl::string_view kFullModel = "full-model";

using Decorator = std::function<SharedOperation(SharedOperation)>;
using Builder = absl::Status (*)(const FaultTarget& target, Fault* fault);

void Decorate(const FaultTarget& target, absl::string_view role, Decorator decorate, Fault* fault) {
  fault->operations.push_back(
      {absl::StrCat("block.", target.block, "/", role), std::move(decorate)});
}

// Decorates every node of one operation; `make` gives the decorator of a node.
template <typename Make>
absl::Status DecorateAll(const FaultTarget& target, OpKind op, Make make, Fault* fault) {
  for (const h3::Node& node : target.graph.nodes()) {
    if (node.op != op) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(Decorator decorate, make(node));
    fault->operations.push_back({node.name, std::move(decorate)});
  }
  return absl::OkStatus();
}

absl::StatusOr<SharedOperation> Reference(const FaultTarget& target, const h3::Node& node,
                                          absl::string_view implementation) {
  PLUMBLINE_ASSIGN_OR_RETURN(
      const OperationRegistration* found,
      target.registry.Find(implementation, node.op, node.role, target.device.kind()));
  return found->operation;
}

// Wide enough for every row of the block.
absl::StatusOr<std::shared_ptr<const ZeroRow>> Zeros(const FaultTarget& target) {
  const h3::TransformerConfig& config = target.weights.config();
  return ZeroRow::Make(target.device, DType::kBF16,
                       std::max(config.hidden_size, config.AttentionWidth()));
}

absl::Status SwapSwiGlu(const FaultTarget& target, Fault* fault) {
  Decorate(target, "swiglu", MakeSwappedSwiGlu, fault);
  return absl::OkStatus();
}

absl::Status PermuteHeads(const FaultTarget& target, Fault* fault) {
  PLUMBLINE_ASSIGN_OR_RETURN(fault->weights, MakePermutedHeads(target.weights, target.block));
  return absl::OkStatus();
}

absl::Status InterleaveQkv(const FaultTarget& target, Fault* fault) {
  PLUMBLINE_ASSIGN_OR_RETURN(fault->weights, MakeInterleavedQkv(target.weights, target.block));
  return absl::OkStatus();
}

absl::Status RotateAllChannels(const FaultTarget& target, Fault* fault) {
  Decorate(target, "rope_q", MakeFullRope, fault);
  Decorate(target, "rope_k", MakeFullRope, fault);
  return absl::OkStatus();
}

absl::Status DropLastKeys(const FaultTarget& target, Fault* fault) {
  PLUMBLINE_ASSIGN_OR_RETURN(std::shared_ptr<const ZeroRow> zeros, Zeros(target));
  const auto decorate = [add = target.grad_sum.operation, zeros](SharedOperation base) {
    return MakeLastKeysDropped(std::move(base), add, zeros);
  };
  Decorate(target, "attention", decorate, fault);
  return absl::OkStatus();
}

absl::Status TagAudioAsVideo(const FaultTarget& target, Fault* fault) {
  fault->change_layout = [](h3::PackedLayout* layout) {
    for (int64_t row : layout->audio_indices) {
      layout->token_tags[row] = h3::kVideoTag;
      layout->adaln_indices[row] = layout->timestep_indices[row] * h3::kTagCount + h3::kVideoTag;
    }
  };
  return absl::OkStatus();
}

absl::Status KeepTimesInBf16(const FaultTarget&, Fault* fault) {
  fault->change_layout = [](h3::PackedLayout* layout) {
    for (int64_t row : layout->video_indices) {
      double& time = layout->position_ids[3 * row];
      time = WidenBf16(RoundToBf16(static_cast<float>(time)));
    }
  };
  return absl::OkStatus();
}

absl::Status RoundBeforeSilu(const FaultTarget& target, Fault* fault) {
  Decorate(target, "adaln_projection", MakeRoundedAdaln, fault);
  return absl::OkStatus();
}

absl::Status KeepFloat32InNorms(const FaultTarget& target, Fault* fault) {
  const auto make = [&](const h3::Node& node) -> absl::StatusOr<Decorator> {
    PLUMBLINE_ASSIGN_OR_RETURN(SharedOperation golden, Reference(target, node, "golden"));
    return [golden = std::move(golden)](SharedOperation base) {
      return MakeFloat32Norm(std::move(base), golden);
    };
  };
  return DecorateAll(target, OpKind::kModulatedRmsNorm, make, fault);
}

absl::Status ZeroQueryGradient(const FaultTarget& target, Fault* fault) {
  PLUMBLINE_ASSIGN_OR_RETURN(std::shared_ptr<const ZeroRow> zeros, Zeros(target));
  const auto decorate = [zeros](SharedOperation base) {
    return MakeZeroWeightGradient(std::move(base), zeros);
  };
  Decorate(target, "q_proj", decorate, fault);
  return absl::OkStatus();
}

absl::Status AddTablesUnordered(const FaultTarget& target, Fault* fault) {
  const auto make = [&](const h3::Node& node) -> absl::StatusOr<Decorator> {
    PLUMBLINE_ASSIGN_OR_RETURN(SharedOperation provider,
                               Reference(target, node, "provider/default"));
    // One count over all executions, which have plans of their own.
    const auto executions = std::make_shared<std::atomic<int64_t>>(0);
    return [provider = std::move(provider), executions](SharedOperation base) {
      return MakeUnorderedTableGradient(std::move(base), provider, executions);
    };
  };
  PLUMBLINE_RETURN_IF_ERROR(DecorateAll(target, OpKind::kModulatedRmsNorm, make, fault));
  return DecorateAll(target, OpKind::kGatedResidual, make, fault);
}

absl::Status SplitProducts(const FaultTarget& target, Fault* fault) {
  const auto make = [&](const h3::Node&) -> absl::StatusOr<Decorator> {
    return [add = target.grad_sum.operation](SharedOperation base) {
      return MakeSplitByRows(std::move(base), add);
    };
  };
  return DecorateAll(target, OpKind::kLinear, make, fault);
}

struct NamedBuilder {
  absl::string_view name;
  Builder build;
};

constexpr NamedBuilder kBuilders[] = {
    {"swiglu-halves", SwapSwiGlu},
    {"qk-heads", PermuteHeads},
    {"native-qkv", InterleaveQkv},
    {"rope-128", RotateAllChannels},
    {"last-keys", DropLastKeys},
    {"audio-as-video", TagAudioAsVideo},
    {"adaln-silu-rounded", RoundBeforeSilu},
    {"norm-float32", KeepFloat32InNorms},
    {"zero-gradient", ZeroQueryGradient},
    {"unordered-gradient", AddTablesUnordered},
    {"split-by-rows", SplitProducts},
    {"long-video", KeepTimesInBf16},
};

absl::StatusOr<Fault> MakeFault(absl::string_view job, absl::string_view name,
                                const FaultTarget& target) {
  Fault fault;
  fault.info = FindFault(job, name);
  for (const NamedBuilder& builder : kBuilders) {
    if (fault.info == nullptr || builder.name != name) continue;
    PLUMBLINE_RETURN_IF_ERROR(builder.build(target, &fault));
    return fault;
  }
  return FieldError("inject", absl::StrCat("there is no fault ", Quoted(name)), FaultNames(job));
}

}  // namespace

std::string InertAt(const FaultInfo& fault, const h3::PackedLayout& layout) {
  // Rows of one frame have one time; a target's frames follow each other behind the keyframes'.
  int64_t frames = 0;
  for (size_t i = layout.keyframe_rows; i < layout.video_indices.size(); ++i) {
    const bool first = i == static_cast<size_t>(layout.keyframe_rows);
    if (first || layout.position_ids[3 * layout.video_indices[i]] !=
                     layout.position_ids[3 * layout.video_indices[i - 1]]) {
      ++frames;
    }
  }
  if (frames >= fault.least_latent_frames) return "";
  return absl::StrCat("fault ", fault.name, " changes nothing below ", fault.least_latent_frames,
                      " latent frames");
}

absl::StatusOr<Fault> MakeBlockFault(absl::string_view name, const FaultTarget& target) {
  return MakeFault(kBlockReplay, name, target);
}

absl::StatusOr<Fault> MakeFullModelFault(absl::string_view name, const FaultTarget& target) {
  return MakeFault(kFullModel, name, target);
}

v1::ControlResult JudgeControl(const FaultInfo& fault, v1::Verdict* verdict) {
  v1::ControlResult result;
  result.set_fault(std::string(fault.name));
  result.set_expected_entry(std::string(fault.expected_entry));
  result.set_expected_gate(std::string(fault.expected_gate));
  const v1::FirstFailure& first = verdict->first_failure();
  result.set_caught(verdict->outcome() == v1::OUTCOME_FAILED &&
                    first.entry() == fault.expected_entry &&
                    (fault.expected_gate.empty() || first.gate() == fault.expected_gate));
  if (!result.caught()) {
    verdict->set_outcome(v1::OUTCOME_FAILED);
    verdict->set_sentence(absl::StrCat("FAILED: the control ", fault.name, " was not caught at ",
                                       fault.expected_entry, ", a failure of Plumbline itself; ",
                                       verdict->sentence()));
  }
  return result;
}

}  // namespace plumbline::drift
