#include "server/store/lease_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::server {

void LeaseTable::Restore(TaskKey task, int64_t token) {
  tokens_[task] = token;
  newest_ = std::max(newest_, token);
}

absl::Status LeaseTable::Check(TaskKey task, int64_t token) const {
  const auto held = tokens_.find(task);
  const int64_t present = held == tokens_.end() ? 0 : held->second;
  if (token > 0 && token == present) return absl::OkStatus();
  return WithReason(
      absl::AbortedError(absl::StrCat(
          "fencing token ", token, " is not the newest of task ", task.task,
          present == 0 ? ": nobody holds it" : absl::StrCat(": the newest is ", present))),
      kLeaseLostReason);
}

absl::Status LeaseTable::Admit(const WriteSet& set) {
  for (const WriteSet::LeaseChange& required : set.required_leases()) {
    PLUMBLINE_RETURN_IF_ERROR(Check(required.task, required.token));
  }
  int64_t newest = newest_;
  for (const WriteSet::LeaseChange& change : set.lease_changes()) {
    if (change.token == 0) continue;
    if (change.token <= newest) {
      return absl::InternalError(absl::StrCat("a grant under token ", change.token,
                                              ", which is not larger than ", newest));
    }
    newest = change.token;
  }
  newest_ = newest;
  for (const WriteSet::LeaseChange& change : set.lease_changes()) {
    if (change.token == 0) {
      tokens_.erase(change.task);
    } else {
      tokens_[change.task] = change.token;
    }
  }
  return absl::OkStatus();
}

}  // namespace plumbline::server
