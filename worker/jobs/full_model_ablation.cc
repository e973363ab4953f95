#include "worker/jobs/full_model_ablation.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/status.h"
#include "worker/drift/full_model_judge.h"

namespace plumbline::jobs {
namespace {

constexpr absl::string_view kGroups[] = {"attention",        "gemms",   "swiglu",
                                         "qk_norm",          "norms",   "residuals",
                                         "adaln_projection", "interim", "all"};

absl::StatusOr<bool> SameBytes(const h3::WeightSource& a, const h3::WeightSource& b,
                               const std::string& parameter) {
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::WeightView x, a.Get(parameter));
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::WeightView y, b.Get(parameter));
  return x.Bytes() == y.Bytes();
}

bool Reads(const h3::Graph& graph, const h3::Node& node, absl::string_view input) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const h3::Use& use) { return graph.values()[use.value].name == input; });
}

}  // namespace

absl::Span<const absl::string_view> AblationGroups() { return kGroups; }

absl::Status KeepFaultOfOwnNodes(const h3::Graph& graph, const h3::ResolvedComposition& candidate,
                                 const h3::ResolvedComposition& ablated, const drift::Fault& fault,
                                 const h3::WeightSource& weights, FullModelSide* side) {
  absl::flat_hash_set<absl::string_view> own;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const h3::Node& node = graph.nodes()[i];
    if (ablated.nodes[i] != candidate.nodes[i]) continue;
    own.insert(node.name);
    if (fault.change_layout != nullptr && Reads(graph, node, "adaln_indices")) {
      side->reads_faulty_inputs = true;
    }
    if (fault.weights == nullptr || side->reads_faulty_weights) continue;
    for (const std::string& parameter : node.parameters) {
      PLUMBLINE_ASSIGN_OR_RETURN(const bool same, SameBytes(weights, *fault.weights, parameter));
      if (!same) side->reads_faulty_weights = true;
    }
  }
  for (const h3::OperationFault& operation : fault.operations) {
    if (own.contains(operation.node)) side->operation_faults.push_back(operation);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::AblationRow> MakeAblationRow(const AblatedSide& ablated, const v1::Rule& rule,
                                                const v1::FullModelReport& judged,
                                                const std::vector<v1::TensorComparison>& errors,
                                                const v1::ImplementationTrace& trace) {
  v1::FullModelReport report;
  report.set_blocks(judged.blocks());
  *report.mutable_trace() = trace;
  for (int i = 0; i < judged.tensors_size(); ++i) {
    v1::FullModelTensor& tensor = *report.add_tensors();
    tensor.set_name(judged.tensors(i).name());
    *tensor.mutable_candidate_error() = errors[i];
  }
  PLUMBLINE_RETURN_IF_ERROR(drift::JudgeFullModel(rule, ablated.group, {}, &report).status());

  v1::AblationRow row;
  row.set_group(ablated.group);
  row.set_composition(ablated.side.name);
  row.set_worst_ratio(report.worst_ratio());
  for (int i = 0; i < judged.tensors_size(); ++i) {
    const std::string& name = judged.tensors(i).name();
    const bool passes = report.tensors(i).passed();
    if (!judged.tensors(i).passed()) {
      (passes ? row.add_cleared() : row.add_remaining())->assign(name);
    } else if (!passes) {
      row.add_introduced(name);
    }
  }
  return row;
}

}  // namespace plumbline::jobs
