// How the names of captures and those of the executor correspond.
#ifndef PLUMBLINE_WORKER_H3_INVENTORY_NAMES_H_
#define PLUMBLINE_WORKER_H3_INVENTORY_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plumbline::h3 {

// The capture's name of a node's output: "block.3/residual_mlp" is "nodes.block.3", "output.video"
// is itself. Empty if the node's output is not in the inventory: "block.3/q_proj".
std::string InventoryNameOfNode(absl::string_view node);

// The executor's name of the gradient of a graph input ("input.hidden_states.grad") as captures
// have it: "input_gradients.hidden_states".
std::string InventoryNameOfInputGradient(absl::string_view tap);

// The executor's name of a tensor of the inventory, the inverse of both: "nodes.block.3.grad" is
// "block.3/residual_mlp.grad", "parameter.NAME" is itself.
std::string TapOfInventoryName(absl::string_view name);

// The first forward tensor of the inventory that a node's work enters: "block.3/q_proj" is
// "nodes.block.3", "scatter" is "nodes.block.0".
std::string FirstTensorBehind(absl::string_view node);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_INVENTORY_NAMES_H_
