// The nodes that a plug-in's kernel may cover, and what each computes.
#ifndef PLUMBLINE_KERNELS_PLUGIN_NODES_H_
#define PLUMBLINE_KERNELS_PLUGIN_NODES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/ops.h"

namespace plumbline::plugin {

struct PluginNode {
  // As plug-ins call it: "norm1"; "refiner/norm1" where a refiner's node of the role computes
  // something else than a block's.
  absl::string_view name;
  // As the graph calls it: "norm1".
  absl::string_view role;
  OpKind op;
};

// Those of a block in execution order, then the others.
absl::Span<const PluginNode> PluginNodes();
// Null if there is none.
const PluginNode* FindPluginNode(absl::string_view name);
// "adaln_projection, norm1, ...".
std::string PluginNodeNames();

// What messages call the inputs and parameters of an operation, e.g. "gate_up", "weight".
std::string InputName(OpKind op, size_t index);
std::string ParameterName(OpKind op, size_t index);

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_NODES_H_
