// Compositions: which implementation every node runs under.
//   COMPOSITION := BASE ('+' IMPLEMENTATION ':' NODE (',' NODE)*)*
// NODE is a role ("attention"), a group ("gemms"), or one node ("block.3/attention").
#ifndef PLUMBLINE_WORKER_H3_COMPOSITION_H_
#define PLUMBLINE_WORKER_H3_COMPOSITION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/registry.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

struct CompositionOverride {
  std::string implementation;
  std::vector<std::string> nodes;
};

struct Composition {
  std::string base;
  std::vector<CompositionOverride> overrides;

  // Canonical text: "provider" is written "provider/default".
  std::string ToString() const;
  // Several of the built-in implementations in one: a diagnosis, and nothing that anybody ships.
  // The candidate with plug-ins in the place of its kernels is none.
  bool IsHybrid() const;
};

// Reads the grammar alone. INVALID_ARGUMENT on field "composition" says where the text is wrong and
// what is accepted there; whether the names exist is found when it is resolved.
absl::StatusOr<Composition> ParseComposition(absl::string_view text);

// The groups that stand for several roles: "gemms", "norms", "qk_norm", "residuals", "interim",
// "all".
std::vector<std::string> CompositionGroups();

// A composition over one graph: for each node, the operation that was asked for.
struct ResolvedComposition {
  Composition composition;
  Precision base_precision = Precision::kMixed;
  // By NodeId; owned by the registry.
  std::vector<const OperationRegistration*> nodes;
  // Overrides that named no node of this graph, e.g. "interim" where nothing is.
  std::vector<std::string> empty_overrides;
  // What adds up gradients (kGradSum), from the base implementation.
  const OperationRegistration* grad_sum = nullptr;
};

// INVALID_ARGUMENT on field "composition" names an implementation or node that does not exist and
// lists those that do.
absl::StatusOr<ResolvedComposition> ResolveComposition(const Composition& composition,
                                                       const Graph& graph, const Registry& registry,
                                                       DeviceKind device);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_COMPOSITION_H_
