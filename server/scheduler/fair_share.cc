#include "server/scheduler/fair_share.h"

#include <algorithm>

namespace plumbline::server {

FairShare::Group& FairShare::Activate(const std::string& name, absl::Time now) {
  touched_.insert(name);
  Group& group = groups_[name];
  if (!group.idle) return group;
  group.idle = false;
  absl::Duration least = absl::InfiniteDuration();
  for (const auto& [other, state] : groups_) {
    if (!state.idle && other != name) least = std::min(least, state.UsedBy(now));
  }
  if (least == absl::InfiniteDuration()) {
    // Nobody is there to be fair to.
    group.used = absl::ZeroDuration();
  } else {
    group.used = std::max(group.used, least);
  }
  for (auto each = groups_.begin(); each != groups_.end();) {
    const bool owes = !each->second.idle || each->second.used > least;
    if (!owes) touched_.insert(each->first);
    each = owes ? std::next(each) : groups_.erase(each);
  }
  return group;
}

void FairShare::Wait(const std::string& group, absl::Time now) { ++Activate(group, now).waiting; }

void FairShare::StopWaiting(const std::string& group) {
  touched_.insert(group);
  --groups_[group].waiting;
}

void FairShare::Begin(const std::string& name, absl::Time now) {
  Group& group = Activate(name, now);
  ++group.running;
  group.begun += now - absl::UnixEpoch();
}

void FairShare::End(const std::string& name, absl::Time begun, absl::Time now) {
  touched_.insert(name);
  Group& group = groups_[name];
  --group.running;
  group.begun -= begun - absl::UnixEpoch();
  group.used += std::max(absl::ZeroDuration(), now - begun);
}

std::map<std::string, std::optional<absl::Duration>> FairShare::TakeChanges() {
  std::map<std::string, std::optional<absl::Duration>> changes;
  for (const std::string& name : touched_) {
    const auto group = groups_.find(name);
    if (group == groups_.end()) {
      changes[name] = std::nullopt;
      continue;
    }
    group->second.idle = !group->second.active();
    if (group->second.used == group->second.handed_out) continue;
    group->second.handed_out = group->second.used;
    changes[name] = group->second.used;
  }
  touched_.clear();
  return changes;
}

void FairShare::Restore(const std::map<std::string, absl::Duration>& used) {
  for (const auto& [name, duration] : used) groups_[name].handed_out = duration;
  for (auto& [name, group] : groups_) {
    group.used = group.handed_out.value_or(absl::ZeroDuration());
    group.idle = !group.active();
  }
  touched_.clear();
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
