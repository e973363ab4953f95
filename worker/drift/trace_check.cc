#include "worker/drift/trace_check.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/h3/inventory_names.h"

namespace plumbline::drift {
namespace {

constexpr absl::string_view kEveryBlock = "block.*/";

class Counter {
 public:
  explicit Counter(int blocks) : blocks_(blocks) {}

  void Add(absl::string_view node) {
    if (!absl::ConsumePrefix(&node, kEveryBlock)) {
      Count(node);
      return;
    }
    for (int block = 0; block < blocks_; ++block) Count(absl::StrCat("block.", block, "/", node));
  }

  std::map<std::string, int> Take() { return std::move(counts_); }

 private:
  void Count(absl::string_view node) {
    const std::string tensor = h3::FirstTensorBehind(node);
    ++counts_[tensor.empty() ? std::string(node) : tensor];
  }

  const int blocks_;
  std::map<std::string, int> counts_;
};

}  // namespace

bool RanAsRequested(absl::string_view requested, absl::string_view actual) {
  if (requested.empty() || !absl::ConsumePrefix(&actual, requested)) return false;
  return actual.empty() || actual.front() == '/';
}

std::map<std::string, int> NodesNotRun(const v1::ImplementationTrace& trace, int blocks) {
  Counter counter(blocks);
  for (const std::string& node : trace.not_executed()) counter.Add(node);
  for (const v1::ImplementationTrace::Group& group : trace.groups()) {
    if (RanAsRequested(group.requested(), group.actual())) continue;
    for (const std::string& node : group.nodes()) counter.Add(node);
  }
  return counter.Take();
}

}  // namespace plumbline::drift
