#include "worker/jobs/replay_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/h3/parameters.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::jobs {
namespace {

constexpr char kGolden[] = "golden";
constexpr char kProvider[] = "provider/default";
constexpr char kProviders[] = "provider/";
constexpr char kCandidate[] = "candidate";

absl::StatusOr<h3::ResolvedComposition> Resolve(absl::string_view text, const h3::Graph& graph,
                                                const JobContext& context) {
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition composition, h3::ParseComposition(text));
  return h3::ResolveComposition(composition, graph, *context.registry, context.device->kind());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplaySetup>> ReplaySetup::Make(const BlockReplayRequest& request,
                                                               const h3::WeightSource& weights,
                                                               const JobContext& context) {
  auto setup = std::make_unique<ReplaySetup>(weights, context);
  const v1::BlockReplaySpec& spec = request.spec.block_replay();
  PLUMBLINE_RETURN_IF_ERROR(setup->ReadSpec(request));
  PLUMBLINE_ASSIGN_OR_RETURN(setup->captures, OpenCaptureFiles(request.captures));
  PLUMBLINE_ASSIGN_OR_RETURN(setup->inputs,
                             MakeReplayInputs(spec, setup->captures, weights.config()));
  setup->graph = h3::BuildBlockGraph(weights.config(), setup->block);
  const h3::RowCounts rows = setup->inputs.Rows();
  setup->entries.emplace(weights.config(), setup->graph, setup->block, rows, setup->backward);
  setup->entries_with_gradients.emplace(weights.config(), setup->graph, setup->block, rows,
                                        /*backward=*/true);
  PLUMBLINE_RETURN_IF_ERROR(setup->CheckInputNames());
  PLUMBLINE_RETURN_IF_ERROR(setup->ResolveSides(spec));
  PLUMBLINE_RETURN_IF_ERROR(setup->PrepareFault(request.spec.inject()));
  return setup;
}

absl::Status ReplaySetup::ReadSpec(const BlockReplayRequest& request) {
  if (!request.spec.has_block_replay()) {
    return FieldError("kind", "is not a block replay", "block_replay");
  }
  const v1::BlockReplaySpec& spec = request.spec.block_replay();
  const int64_t blocks = weights.config().num_layers;
  if (spec.block() < 0 || spec.block() >= blocks) {
    return FieldError("block_replay.block", absl::StrCat("there is no block ", spec.block()),
                      absl::StrCat("0 to ", blocks - 1));
  }
  if (spec.layouts_size() > 1) {
    return FieldError("block_replay.layouts",
                      absl::StrCat("one task replays one layout, not ", spec.layouts_size()),
                      "one layout");
  }
  if (spec.captures().providers_size() > 1) {
    return FieldError("block_replay.captures.providers",
                      "a block replay compares with one provider", "one capture");
  }
  const std::string text =
      request.spec.composition().empty() ? kCandidate : request.spec.composition();
  PLUMBLINE_ASSIGN_OR_RETURN(composition, h3::ParseComposition(text));
  block = spec.block();
  backward = spec.backward();
  save_tensors_path = request.save_tensors_path;
  return absl::OkStatus();
}

// A file of inputs alone is checked here; those of other sides when they are loaded.
absl::Status ReplaySetup::CheckInputNames() const {
  if (captures.inputs == nullptr) return absl::OkStatus();
  absl::flat_hash_set<absl::string_view> known;
  for (const drift::BlockEntry& entry : entries_with_gradients->all()) {
    known.insert(entry.capture_name);
  }
  std::vector<std::string> extra;
  for (const TensorInfo& tensor : captures.inputs->tensors()) {
    if (!known.contains(tensor.name) && !h3::IsBlockInputName(tensor.name)) {
      extra.push_back(Quoted(tensor.name));
    }
  }
  if (extra.empty()) return absl::OkStatus();
  return FieldError(
      "block_replay.captures.inputs",
      absl::StrCat("has tensors that are no input of a block: ", absl::StrJoin(extra, ", ")),
      "block.input, block.temb, block.upstream, position_ids, token_tags, video_indices, "
      "audio_indices, text_indices, timestep, timestep_indices");
}

absl::Status ReplaySetup::ResolveSides(const v1::BlockReplaySpec& spec) {
  if (captures.golden == nullptr) {
    PLUMBLINE_ASSIGN_OR_RETURN(golden, Resolve(kGolden, graph, context));
  }
  provider_name = kProvider;
  if (captures.provider == nullptr) {
    PLUMBLINE_ASSIGN_OR_RETURN(provider, Resolve(kProvider, graph, context));
  } else if (!spec.captures().providers().empty()) {
    provider_name = spec.captures().providers().begin()->first;
  }
  candidate_name = composition.ToString();
  if (!captured_candidate()) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        candidate,
        h3::ResolveComposition(composition, graph, *context.registry, context.device->kind()));
  } else if (candidate_name != kCandidate) {
    return FieldError("composition",
                      absl::StrCat(candidate_name, " cannot run: a capture is the candidate"),
                      "candidate, or no captured candidate");
  }
  return absl::OkStatus();
}

bool ReplaySetup::is_reference() const {
  return !captured_candidate() && !composition.IsHybrid() &&
         (composition.base == kGolden || absl::StartsWith(composition.base, kProviders));
}

absl::Status ReplaySetup::PrepareFault(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  if (captured_candidate()) {
    return FieldError("inject", "a captured candidate cannot be changed",
                      "a composition that runs");
  }
  if (is_reference()) {
    return FieldError("inject",
                      absl::StrCat(candidate_name, " is not judged, so no fault is found in it"),
                      "a candidate");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(drift::Fault made,
                             drift::MakeBlockFault(name, {graph, block, weights, *context.registry,
                                                          *context.device, *candidate->grad_sum}));
  inert_fault = drift::InertAt(*made.info, inputs.values.layout);
  if (inert_fault.empty()) fault = std::move(made);
  return absl::OkStatus();
}

int64_t ReplaySetup::EstimatedBytes() const {
  // Every tensor of the replay in float32. A side in mixed precision takes half.
  int64_t float32_bytes = 0;
  for (const drift::BlockEntry& entry : entries->all()) {
    int64_t elements = 1;
    for (int64_t extent : entry.shape) elements *= extent;
    float32_bytes += elements * 4;
  }
  const bool full = candidate.has_value() && candidate->base_precision == Precision::kFloat32;
  const int64_t candidate_bytes = full ? float32_bytes : float32_bytes / 2;
  // A plan holds what it computes, and inputs, saved state and scratch besides.
  const auto plan = [](int64_t bytes) { return bytes + bytes / 2; };
  // Golden runs; or candidate runs isolated, and golden, provider and its two sets are kept; or
  // candidate runs a batch of 2 beside its chained set.
  const int64_t peak =
      std::max({float32_bytes + plan(float32_bytes),
                float32_bytes + float32_bytes / 2 + 2 * candidate_bytes + plan(candidate_bytes),
                candidate_bytes + 2 * plan(candidate_bytes)});
  const int64_t weight_bytes = h3::TotalParameterBytes(h3::BlockParameters(weights.config(), ""));
  constexpr int64_t kSlackBytes = 16 << 20;
  return peak + 2 * weight_bytes + kSlackBytes;
}

}  // namespace plumbline::jobs
