#include "server/scheduler/model/explorer.h"

#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"

namespace plumbline::server {

Exploration Explore(ModelLimits limits, PlantedBug bug, int64_t max_states) {
  struct Node {
    LeaseModel model;
    int64_t step;  // In `steps`.
  };
  struct Step {
    int64_t parent;
    std::string action;
  };
  ModelClock clock;
  Exploration result;
  std::vector<Step> steps;
  std::deque<Node> open;
  absl::flat_hash_set<size_t> seen;
  open.push_back({LeaseModel(&clock, limits, bug), -1});
  seen.insert(absl::HashOf(open.front().model.Fingerprint()));
  while (!open.empty()) {
    const Node node = std::move(open.front());
    open.pop_front();
    ++result.states;
    result.completed += node.model.has_completed() ? 1 : 0;
    result.refused += node.model.has_refused() ? 1 : 0;
    result.resumed += node.model.has_resumed() ? 1 : 0;
    const std::vector<std::string> actions = node.model.Actions();
    for (size_t i = 0; i < actions.size(); ++i) {
      LeaseModel next = node.model;
      next.Take(i);
      ++result.transitions;
      if (!next.violation().empty()) {
        result.violation = next.violation();
        result.trace = {actions[i]};
        for (int64_t step = node.step; step >= 0; step = steps[step].parent) {
          result.trace.insert(result.trace.begin(), steps[step].action);
        }
        return result;
      }
      if (!seen.insert(absl::HashOf(next.Fingerprint())).second) continue;
      if (static_cast<int64_t>(seen.size()) > max_states) return result;
      steps.push_back({node.step, actions[i]});
      open.push_back({std::move(next), static_cast<int64_t>(steps.size()) - 1});
    }
  }
  result.complete = true;
  return result;
}

}  // namespace plumbline::server
