#include "server/scheduler/fair_share.h"

#include <algorithm>

namespace plumbline::server {

FairShare::Group& FairShare::Activate(const std::string& name, absl::Time now) {
  Group& group = groups_[name];
  if (group.active()) return group;
  absl::Duration least = absl::InfiniteDuration();
  for (const auto& [other, state] : groups_) {
    if (state.active()) least = std::min(least, state.UsedBy(now));
  }
  if (least == absl::InfiniteDuration()) {
    // Nobody is there to be fair to.
    for (auto each = groups_.begin(); each != groups_.end();) {
      each = each->first == name ? std::next(each) : groups_.erase(each);
    }
    group.used = absl::ZeroDuration();
    return group;
  }
  for (auto each = groups_.begin(); each != groups_.end();) {
    const bool owes = each->second.active() || each->second.used > least || each->first == name;
    each = owes ? std::next(each) : groups_.erase(each);
  }
  group.used = std::max(group.used, least);
  return group;
}

void FairShare::Wait(const std::string& group, absl::Time now) { ++Activate(group, now).waiting; }

void FairShare::StopWaiting(const std::string& group) { --groups_[group].waiting; }

void FairShare::Begin(const std::string& name, absl::Time now) {
  Group& group = Activate(name, now);
  ++group.running;
  group.begun += now - absl::UnixEpoch();
}

void FairShare::End(const std::string& name, absl::Time begun, absl::Time now) {
  Group& group = groups_[name];
  --group.running;
  group.begun -= begun - absl::UnixEpoch();
  group.used += std::max(absl::ZeroDuration(), now - begun);
}

FairShare::Rank FairShare::RankOf(const std::string& name, absl::Time now) const {
  const auto group = groups_.find(name);
  if (group == groups_.end()) return {absl::ZeroDuration(), 0};
  return {group->second.UsedBy(now), group->second.running};
}

int FairShare::QuotaOf(const std::string& group) const {
  auto quota = quotas_.find(group);
  if (quota == quotas_.end()) quota = quotas_.find(kEveryGroup);
  return quota == quotas_.end() ? -1 : quota->second;
}

bool FairShare::AtQuota(const std::string& name) const {
  const int quota = QuotaOf(name);
  const auto group = groups_.find(name);
  return quota >= 0 && (group == groups_.end() ? 0 : group->second.running) >= quota;
}

}  // namespace plumbline::server
