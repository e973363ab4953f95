// The tensors of a full-model run, by the names that captures give them.
#ifndef PLUMBLINE_WORKER_H3_INVENTORY_H_
#define PLUMBLINE_WORKER_H3_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker/h3/config.h"
#include "worker/h3/execution.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

struct InventoryTensor {
  std::string name;  // a capture's: "nodes.block.0.grad", "parameter.proj_in.weight"
  std::string tap;   // the executor's: "block.0/residual_mlp.grad", "parameter.proj_in.weight"
  TapKind kind = TapKind::kForward;
  // As captures have it, batch 1: (1, rows, width); what depends on timesteps alone is (T, width),
  // a parameter as it is stored.
  std::vector<int64_t> shape;

  // Which floor a rule gives it.
  bool IsGradient() const { return kind != TapKind::kForward; }
};

// Every tensor of the inventory in execution order: forward; then the gradients reaching node
// outputs as the backward produces them; then the leaves, parameters and inputs, as the backward
// completes them. 764 tensors at the released size. `graph` is BuildTransformerGraph(config).
std::vector<InventoryTensor> MakeInventory(const TransformerConfig& config, const Graph& graph,
                                           const RowCounts& rows);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_INVENTORY_H_
