#include "worker/jobs/implementation_trace.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plumbline::jobs {
namespace {

// What was requested, and what ran.
using Pair = std::pair<std::string, std::string>;

bool IsInBlock(const h3::Node& node) { return absl::StartsWith(node.name, "block."); }

}  // namespace

v1::ImplementationTrace MakeImplementationTrace(const h3::Graph& graph,
                                                const std::vector<h3::NodeTrace>& traces,
                                                bool backward) {
  v1::ImplementationTrace message;
  // By role of the blocks: the first pair, and whether every block has it.
  std::map<std::string, std::pair<Pair, bool>> roles;
  const auto executed = [&](size_t i) {
    const bool differentiable = graph.values()[graph.nodes()[i].output].differentiable;
    return traces[i].executed_forward &&
           (!backward || !differentiable || traces[i].executed_backward);
  };
  const auto pair = [&](size_t i) { return Pair(traces[i].requested, traces[i].actual); };
  for (size_t i = 0; i < traces.size(); ++i) {
    const h3::Node& node = graph.nodes()[i];
    if (!IsInBlock(node)) continue;
    const auto [place, is_new] = roles.try_emplace(node.role, pair(i), true);
    if (place->second.first != pair(i) || !executed(i)) place->second.second = false;
  }

  std::map<Pair, v1::ImplementationTrace::Group> groups;
  for (size_t i = 0; i < traces.size(); ++i) {
    const h3::Node& node = graph.nodes()[i];
    if (!executed(i)) {
      message.add_not_executed(node.name);
      continue;
    }
    v1::ImplementationTrace::Group& group = groups[pair(i)];
    if (!IsInBlock(node) || !roles.at(node.role).second) {
      group.add_nodes(node.name);
    } else if (absl::StartsWith(node.name, "block.0/")) {
      group.add_nodes(absl::StrCat("block.*/", node.role));
    }
  }
  for (auto& [implementations, group] : groups) {
    group.set_requested(implementations.first);
    group.set_actual(implementations.second);
    *message.add_groups() = std::move(group);
  }
  return message;
}

}  // namespace plumbline::jobs
