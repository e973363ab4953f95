#include "kernels/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline {
namespace {

bool Serves(const OperationRegistration& registration, absl::string_view node) {
  return registration.nodes.empty() ||
         std::find(registration.nodes.begin(), registration.nodes.end(), node) !=
             registration.nodes.end();
}

}  // namespace

absl::string_view BindingStatusName(BindingStatus status) {
  switch (status) {
    case BindingStatus::kBound:
      return "bound";
    case BindingStatus::kInterim:
      return "interim";
    case BindingStatus::kReference:
      return "reference";
  }
  return "unknown";
}

absl::Status Registry::Register(OperationRegistration registration) {
  for (const auto& existing : operations_) {
    if (existing->implementation == registration.implementation &&
        existing->op == registration.op && existing->device == registration.device &&
        existing->nodes == registration.nodes) {
      return absl::AlreadyExistsError(absl::StrCat("implementation '", registration.implementation,
                                                   "' already has an operation ",
                                                   OpName(registration.op)));
    }
  }
  operations_.push_back(std::make_unique<const OperationRegistration>(std::move(registration)));
  return absl::OkStatus();
}

absl::Status Registry::RegisterFused(FusedRegistration registration) {
  for (const auto& existing : fused_) {
    if (existing->name == registration.name && existing->device == registration.device) {
      return absl::AlreadyExistsError(
          absl::StrCat("fused operation '", registration.name, "' is registered twice"));
    }
  }
  fused_.push_back(std::make_unique<const FusedRegistration>(std::move(registration)));
  std::stable_sort(fused_.begin(), fused_.end(),
                   [](const auto& a, const auto& b) { return a->nodes.size() > b->nodes.size(); });
  return absl::OkStatus();
}

absl::StatusOr<const OperationRegistration*> Registry::Find(absl::string_view implementation,
                                                            OpKind op, absl::string_view node,
                                                            DeviceKind device) const {
  const OperationRegistration* found = nullptr;
  std::vector<std::string> others;
  for (const auto& registration : operations_) {
    if (registration->op != op || registration->device != device || !Serves(*registration, node))
      continue;
    if (registration->implementation != implementation) {
      others.push_back(registration->implementation);
    } else if (found == nullptr || found->nodes.empty()) {
      found = registration.get();
    }
  }
  if (found != nullptr) return found;
  return absl::NotFoundError(absl::StrCat("implementation '", implementation, "' has no ",
                                          OpName(op), " for node '", node,
                                          "'; those that do: ", absl::StrJoin(others, ", ")));
}

std::vector<const FusedRegistration*> Registry::Fused(absl::string_view implementation,
                                                      DeviceKind device) const {
  std::vector<const FusedRegistration*> result;
  for (const auto& registration : fused_) {
    if (registration->implementation == implementation && registration->device == device) {
      result.push_back(registration.get());
    }
  }
  return result;
}

std::vector<std::string> Registry::Implementations(DeviceKind device) const {
  std::vector<std::string> names;
  for (const auto& registration : operations_) {
    if (registration->device != device) continue;
    if (std::find(names.begin(), names.end(), registration->implementation) == names.end()) {
      names.push_back(registration->implementation);
    }
  }
  return names;
}

}  // namespace plumbline
