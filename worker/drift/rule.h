// The ensemble rule: what a tensor of the full model may differ from golden by, in terms of what
// providers differ by. v1::Rule is its content in memory; its `tensors` are sorted by name.
#ifndef PLUMBLINE_WORKER_DRIFT_RULE_H_
#define PLUMBLINE_WORKER_DRIFT_RULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/plumbline/v1/full_model.pb.h"

namespace plumbline::drift {

inline constexpr absl::string_view kRuleFormat = "plumbline-rule-1";

// Floors that a frozen rule has.
inline constexpr double kForwardFloor = 1e-3;
inline constexpr double kGradientFloor = 5e-3;

// k lies on a grid of a tenth, from 1.0; beyond the last one providers do not bound each other.
inline constexpr int kLeastTenths = 10;
inline constexpr int kMostTenths = 1000;

// Fewer do not make an ensemble.
inline constexpr int kLeastProviders = 3;

// What a rule file may hold at most, so that a hostile one cannot keep a worker busy.
inline constexpr int kMostProviders = 16;
inline constexpr int kMostTensors = 16384;

// Whether the gradient floor holds for a tensor of the inventory: `.grad`, `parameter.*`,
// `input_gradients.*`.
bool IsGradientTensor(absl::string_view name);

double FloorOf(const v1::Rule::Floors& floors, absl::string_view tensor);

// k * max + floor, in that order of rounding.
double EnsembleBound(double k, double largest_error, double floor);

// Hex digest of the sorted names, one a line, each line ended.
std::string TensorNamesSha256(std::vector<std::string> names);

// Every held-out provider at every factor of the grid from 1.0 up to `rule.k`, judged by the bounds
// that the other kept ones make at that factor.
std::vector<v1::Rule::HoldOut> LeaveOneOut(const v1::Rule& rule);

// The smallest factor of the grid, in tenths, at which every kept provider passes against the
// others. FAILED_PRECONDITION names the provider and the tensor if there is none.
absl::StatusOr<int> SmallestTenths(const v1::Rule& rule);

// OK if `rule` may judge a run that has these binds and, in any order, these tensor names; the
// binds' digest of names is not read. Otherwise INVALID_ARGUMENT with a violation for everything
// that differs. A device class that differs is accepted with `allow_other_device`, which the
// verdict must then state (OtherDeviceQualification).
absl::Status CheckBinds(const v1::Rule& rule, const v1::Rule::Binds& run,
                        absl::Span<const std::string> names, bool allow_other_device);

// What a verdict says of a rule from another device class than the run's; empty for the same one.
std::string OtherDeviceQualification(const v1::Rule& rule, const v1::Rule::Binds& run);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_RULE_H_
