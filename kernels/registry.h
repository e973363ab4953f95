// Implementation names -> operations. Adding a kernel is writing an Operation and registering it
// here under a name.
#ifndef PLUMBLINE_KERNELS_REGISTRY_H_
#define PLUMBLINE_KERNELS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "kernels/ops.h"

namespace plumbline {

// How far an implementation's kernel for a node is its own.
enum class BindingStatus {
  kBound,      // its own kernel
  kInterim,    // a deterministic stand-in
  kReference,  // the provider replay, or the golden
};

absl::string_view BindingStatusName(BindingStatus status);  // "bound", "interim", "reference"

// One operation under one implementation name, e.g. "candidate" or "provider/default".
struct OperationRegistration {
  std::string implementation;
  OpKind op;
  DeviceKind device = DeviceKind::kCpu;
  std::string owner;
  BindingStatus status = BindingStatus::kBound;
  std::shared_ptr<const Operation> operation;
  // The nodes it serves, e.g. {"attention"}; empty: every node of the operation. A registration
  // that names a node is preferred to one that does not.
  std::vector<std::string> nodes;
  // A plug-in's: what it says that gates will find.
  bool promises_repeatable = false;
  bool promises_row_invariant = false;
};

// One of the nodes that a fused operation covers: its role ("norm2") and what it computes there. A
// refiner's residual has a block's role and another operation.
struct FusedNode {
  std::string role;
  OpKind op;
};

// A fused forward of one implementation over consecutive nodes. `name` is what reports call it,
// e.g. "candidate/residual_norm".
struct FusedRegistration {
  std::string implementation;
  std::string name;
  DeviceKind device = DeviceKind::kCpu;
  std::vector<FusedNode> nodes;
  std::shared_ptr<const FusedOperation> operation;
};

// Filled at start, then only read: const calls may come from any thread.
class Registry {
 public:
  // ALREADY_EXISTS when an equal (implementation, op, device, node) is there.
  absl::Status Register(OperationRegistration registration);
  absl::Status RegisterFused(FusedRegistration registration);

  // NOT_FOUND names the implementations that do serve the node on the device.
  absl::StatusOr<const OperationRegistration*> Find(absl::string_view implementation, OpKind op,
                                                    absl::string_view node,
                                                    DeviceKind device) const;
  // The fused registrations of an implementation, longest first.
  std::vector<const FusedRegistration*> Fused(absl::string_view implementation,
                                              DeviceKind device) const;
  // Every implementation name with an operation on the device, in order of registration.
  std::vector<std::string> Implementations(DeviceKind device) const;

 private:
  std::vector<std::unique_ptr<const OperationRegistration>> operations_;
  std::vector<std::unique_ptr<const FusedRegistration>> fused_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_REGISTRY_H_
