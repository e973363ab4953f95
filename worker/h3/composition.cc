#include "worker/h3/composition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr char kField[] = "composition";
constexpr char kGrammar[] =
    "BASE ('+' IMPLEMENTATION ':' NODE (',' NODE)*)*, e.g. candidate+provider:attention,swiglu";
// A composition names at most every node of a model, one by one.
constexpr size_t kMaxTextBytes = 64 << 10;

struct Group {
  absl::string_view name;
  std::vector<absl::string_view> roles;
};

// "interim" and "all" depend on more than a node's role and are not here.
const std::vector<Group>& RoleGroups() {
  static const auto* const groups = new std::vector<Group>{
      {"gemms", {"q_proj", "k_proj", "v_proj", "o_proj", "ffn_gate_up", "ffn_down"}},
      {"norms", {"norm1", "norm2"}},
      {"qk_norm", {"q_norm", "k_norm"}},
      {"residuals", {"residual_attn", "residual_mlp"}},
  };
  return *groups;
}

bool IsName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("_-./", absl::string_view(&c, 1));
  });
}

std::string CanonicalImplementation(absl::string_view name) {
  return name == "provider" ? "provider/default" : std::string(name);
}

absl::Status NotInGrammar(absl::string_view what) { return FieldError(kField, what, kGrammar); }

// Whether a NODE of the grammar names `node`, whose implementation under the base is `base`.
bool Names(absl::string_view pattern, const Node& node, const OperationRegistration* base) {
  if (pattern == node.name || pattern == node.role || pattern == "all") return true;
  if (pattern == "interim") return base != nullptr && base->status == BindingStatus::kInterim;
  for (const Group& group : RoleGroups()) {
    if (pattern == group.name) {
      return std::find(group.roles.begin(), group.roles.end(), node.role) != group.roles.end();
    }
  }
  return false;
}

std::string AcceptedNodes(const Graph& graph) {
  std::vector<std::string> names = CompositionGroups();
  for (const Node& node : graph.nodes()) {
    if (std::find(names.begin(), names.end(), node.role) == names.end()) names.push_back(node.role);
  }
  return absl::StrCat(absl::StrJoin(names, ", "), ", or one node such as ",
                      graph.nodes().front().name);
}

bool IsPlugin(absl::string_view implementation) {
  return absl::StartsWith(implementation, "plugin/");
}

// Whether the implementation computes a node of the same role that is another operation.
bool HasRoleOfOtherOperation(absl::string_view implementation, const Node& node, const Graph& graph,
                             const Registry& registry, DeviceKind device) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& other) {
    return other.role == node.role && other.op != node.op &&
           registry.Find(implementation, other.op, other.role, device).ok();
  });
}

absl::Status CheckImplementation(absl::string_view name, const Registry& registry,
                                 DeviceKind device) {
  const std::vector<std::string> known = registry.Implementations(device);
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return FieldError(kField,
                    absl::StrCat("there is no implementation ", Quoted(name), " on this device"),
                    absl::StrJoin(known, ", "));
}

}  // namespace

std::string Composition::ToString() const {
  std::string text = base;
  for (const CompositionOverride& override : overrides) {
    absl::StrAppend(&text, "+", override.implementation, ":", absl::StrJoin(override.nodes, ","));
  }
  return text;
}

bool Composition::IsHybrid() const {
  const bool plugins_alone =
      base == "candidate" &&
      std::all_of(overrides.begin(), overrides.end(), [](const CompositionOverride& override) {
        return IsPlugin(override.implementation);
      });
  return !overrides.empty() && !plugins_alone;
}

std::vector<std::string> CompositionGroups() {
  std::vector<std::string> names;
  for (const Group& group : RoleGroups()) names.emplace_back(group.name);
  names.emplace_back("interim");
  names.emplace_back("all");
  return names;
}

absl::StatusOr<Composition> ParseComposition(absl::string_view text) {
  if (text.size() > kMaxTextBytes) return NotInGrammar("is longer than 64 KiB");
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '+');
  if (!IsName(parts[0])) {
    return NotInGrammar(absl::StrCat("the base ", Quoted(parts[0]), " is no implementation name"));
  }
  Composition composition;
  composition.base = CanonicalImplementation(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(parts[i], absl::MaxSplits(':', 1));
    if (!IsName(halves.first) || halves.second.empty()) {
      return NotInGrammar(
          absl::StrCat("the override ", Quoted(parts[i]), " is not IMPLEMENTATION:NODE"));
    }
    CompositionOverride override;
    override.implementation = CanonicalImplementation(halves.first);
    for (absl::string_view node : absl::StrSplit(halves.second, ',')) {
      if (!IsName(node)) return NotInGrammar(absl::StrCat(Quoted(node), " is no node name"));
      override.nodes.emplace_back(node);
    }
    composition.overrides.push_back(std::move(override));
  }
  return composition;
}

absl::StatusOr<ResolvedComposition> ResolveComposition(const Composition& composition,
                                                       const Graph& graph, const Registry& registry,
                                                       DeviceKind device) {
  PLUMBLINE_RETURN_IF_ERROR(CheckImplementation(composition.base, registry, device));
  if (IsPlugin(composition.base)) {
    return FieldError(kField, absl::StrCat(composition.base, " covers single nodes, not a model"),
                      absl::StrCat("candidate+", composition.base, ":NODE"));
  }
  ResolvedComposition resolved;
  resolved.composition = composition;

  // The base may lack a node only if an override gives it.
  std::vector<absl::Status> missing(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    absl::StatusOr<const OperationRegistration*> found =
        registry.Find(composition.base, node.op, node.role, device);
    missing[resolved.nodes.size()] = found.status();
    resolved.nodes.push_back(found.ok() ? *found : nullptr);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(resolved.grad_sum,
                             registry.Find(composition.base, OpKind::kGradSum, "grad_sum", device));
  resolved.base_precision = resolved.grad_sum->operation->precision();

  const std::vector<const OperationRegistration*> base = resolved.nodes;
  for (const CompositionOverride& override : composition.overrides) {
    PLUMBLINE_RETURN_IF_ERROR(CheckImplementation(override.implementation, registry, device));
    for (const std::string& pattern : override.nodes) {
      bool found_any = false;
      for (size_t i = 0; i < graph.nodes().size(); ++i) {
        const Node& node = graph.nodes()[i];
        if (!Names(pattern, node, base[i])) continue;
        const absl::StatusOr<const OperationRegistration*> found =
            registry.Find(override.implementation, node.op, node.role, device);
        // Some roles of a block are another operation in a refiner, which a plug-in need not have.
        if (!found.ok() && pattern != node.name && IsPlugin(override.implementation) &&
            HasRoleOfOtherOperation(override.implementation, node, graph, registry, device)) {
          continue;
        }
        if (!found.ok()) return FieldError(kField, found.status().message());
        resolved.nodes[i] = *found;
        missing[i] = absl::OkStatus();
        found_any = true;
      }
      if (found_any) continue;
      const std::vector<std::string> groups = CompositionGroups();
      if (std::find(groups.begin(), groups.end(), pattern) == groups.end()) {
        return FieldError(kField, absl::StrCat("there is no node ", Quoted(pattern)),
                          AcceptedNodes(graph));
      }
      resolved.empty_overrides.push_back(absl::StrCat(override.implementation, ":", pattern));
    }
  }
  for (const absl::Status& status : missing) {
    if (!status.ok()) return FieldError(kField, status.message(), "an override for that node");
  }
  return resolved;
}

}  // namespace plumbline::h3
