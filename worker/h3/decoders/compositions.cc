#include "worker/h3/decoders/compositions.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

bool HasNode(const Graph& graph, absl::string_view name) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return node.name == name || node.role == name; });
}

// What of `composition` can be about `graph`: all but nodes that only `other` has.
Composition For(const Composition& composition, const Graph& graph, const Graph& other) {
  Composition narrowed;
  narrowed.base = composition.base;
  for (const CompositionOverride& override : composition.overrides) {
    CompositionOverride kept;
    kept.implementation = override.implementation;
    for (const std::string& node : override.nodes) {
      if (HasNode(graph, node) || !HasNode(other, node)) kept.nodes.push_back(node);
    }
    if (!kept.nodes.empty()) narrowed.overrides.push_back(std::move(kept));
  }
  return narrowed;
}

}  // namespace

absl::StatusOr<DecoderComposition> ResolveDecoders(const Composition& composition,
                                                   const Graph& video, const Graph& audio,
                                                   const Registry& registry, DeviceKind device) {
  DecoderComposition resolved;
  resolved.composition = composition;
  PLUMBLINE_ASSIGN_OR_RETURN(
      resolved.video, ResolveComposition(For(composition, video, audio), video, registry, device));
  PLUMBLINE_ASSIGN_OR_RETURN(
      resolved.audio, ResolveComposition(For(composition, audio, video), audio, registry, device));
  if (absl::StartsWith(composition.base, "provider/") && device == DeviceKind::kCuda) {
    resolved.blend = BlendRounding::kFloat16;
  }
  return resolved;
}

}  // namespace plumbline::h3
