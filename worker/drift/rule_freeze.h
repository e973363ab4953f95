#ifndef PLUMBLINE_WORKER_DRIFT_RULE_FREEZE_H_
#define PLUMBLINE_WORKER_DRIFT_RULE_FREEZE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/full_model.pb.h"

namespace plumbline::drift {

// How far one tensor of a provider is from golden.
struct TensorError {
  double relative_l2 = 0;
  double max_abs = 0;

  friend bool operator==(const TensorError& a, const TensorError& b) {
    return a.relative_l2 == b.relative_l2 && a.max_abs == b.max_abs;
  }
};

// What a rule is made from: a provider and its whole error table. There is no place for a
// candidate.
struct ProviderErrors {
  std::string name;  // composition or capture, e.g. "provider/default"
  // Its part "composition" says what every node ran. Without parts for a capture.
  v1::NumericalIdentity identity;
  // By tensor. May be empty where implementations equal an earlier provider's: it was not run.
  std::map<std::string, TensorError> errors;
};

// Makes the rule of a run: drops providers whose resolved implementations or whole table equal an
// earlier one's, finds the smallest k and sets every bound to k * max + floor. `binds` are the
// run's; the digest of tensor names is filled in. The result has its leave-one-out and its digest.
// FAILED_PRECONDITION: fewer than three providers are left, or no k lets them pass.
// INVALID_ARGUMENT: tables of different tensors, an error that is not finite, a name twice, a
// digest that is none.
absl::StatusOr<v1::Rule> FreezeRule(const std::vector<ProviderErrors>& providers,
                                    const v1::Rule::Binds& binds);

// The tables that a report of a full model holds, in the order of its providers.
std::vector<ProviderErrors> ProviderErrorsOf(const v1::FullModelReport& report);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_RULE_FREEZE_H_
