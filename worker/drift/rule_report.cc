#include "worker/drift/rule_report.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plumbline::drift {
namespace {

using BoundPair = v1::RuleReport::BoundPair;

// How far apart the two are, whichever is larger.
double Distance(const BoundPair& pair) {
  if (!pair.has_bound() || !pair.has_other_bound()) return std::numeric_limits<double>::infinity();
  const double small = std::min(pair.bound(), pair.other_bound());
  const double large = std::max(pair.bound(), pair.other_bound());
  if (large == small) return 1;
  return small == 0 ? std::numeric_limits<double>::max() : large / small;
}

}  // namespace

v1::RuleReport CompareRules(const v1::Rule& a, const v1::Rule& b) {
  v1::RuleReport report;
  *report.mutable_rule() = a;
  *report.mutable_other() = b;
  std::map<std::string, BoundPair> by_name;
  for (const v1::Rule::TensorBound& tensor : a.tensors()) {
    by_name[tensor.name()].set_bound(tensor.bound());
  }
  for (const v1::Rule::TensorBound& tensor : b.tensors()) {
    by_name[tensor.name()].set_other_bound(tensor.bound());
  }
  std::vector<BoundPair> pairs;
  for (auto& [name, pair] : by_name) {
    pair.set_tensor(name);
    pairs.push_back(std::move(pair));
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const BoundPair& x, const BoundPair& y) {
    return Distance(x) > Distance(y);
  });
  for (BoundPair& pair : pairs) *report.add_bounds() = std::move(pair);
  return report;
}

}  // namespace plumbline::drift
