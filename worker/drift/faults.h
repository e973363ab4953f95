#ifndef PLUMBLINE_WORKER_DRIFT_FAULTS_H_
#define PLUMBLINE_WORKER_DRIFT_FAULTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/vocabulary.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "worker/h3/execution.h"
#include "worker/h3/graph.h"
#include "worker/h3/packed_layout.h"
#include "worker/h3/weight_source.h"

namespace plumbline::drift {

// A negative control, ready to be put into the executions of a candidate. The table of them is
// common/vocabulary.h. One thread at a time.
struct Fault {
  const FaultInfo* info = nullptr;
  // Of the three, what the fault does not change is empty.
  std::vector<h3::OperationFault> operations;
  std::unique_ptr<h3::WeightSource> weights;  // to read instead of the checkpoint's
  std::function<void(h3::PackedLayout*)> change_layout;
};

// Why the fault changes nothing at this layout, as a verdict's qualification; "" where it does.
std::string InertAt(const FaultInfo& fault, const h3::PackedLayout& layout);

// Where a fault is put. All must outlive it.
struct FaultTarget {
  const h3::Graph& graph;
  int64_t block;
  const h3::WeightSource& weights;
  const Registry& registry;
  Device& device;
  // Of the candidate's gradient sums: what adds where a fault has something to add.
  const OperationRegistration& grad_sum;
};

// A fault of block replay, or of a full model, whose graph is then the whole transformer's.
// INVALID_ARGUMENT on "inject" lists the names, or says what the fault needs that the checkpoint
// does not have.
absl::StatusOr<Fault> MakeBlockFault(absl::string_view name, const FaultTarget& target);
absl::StatusOr<Fault> MakeFullModelFault(absl::string_view name, const FaultTarget& target);

// Whether a verdict names the fault where it was put. A verdict that does not is made FAILED: the
// product has not found what it must find.
v1::ControlResult JudgeControl(const FaultInfo& fault, v1::Verdict* verdict);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_FAULTS_H_
