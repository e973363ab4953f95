#ifndef PLUMBLINE_SERVER_SCHEDULER_FAIR_SHARE_H_
#define PLUMBLINE_SERVER_SCHEDULER_FAIR_SHARE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace plumbline::server {

// Shares the workers among groups of jobs: next is the group that has used the least of their time
// since it last had nothing to do. Who comes back from idling has no credit for that, and who used
// more than the rest has not lost its debt. What must outlive the process is handed out and taken
// back. One thread at a time.
class FairShare {
 public:
  // Of a group that `quotas` does not name: that of `kEveryGroup`, if there is one.
  static constexpr char kEveryGroup[] = "*";

  // `quotas`: how many tasks of a group may run at once.
  explicit FairShare(std::map<std::string, int> quotas) : quotas_(std::move(quotas)) {}

  // A task of the group begins or ceases to wait for a worker.
  void Wait(const std::string& group, absl::Time now);
  void StopWaiting(const std::string& group);
  // A task of the group is given to a worker, and comes back.
  void Begin(const std::string& group, absl::Time now);
  void End(const std::string& group, absl::Time begun, absl::Time now);

  // Ends a call of whoever drives it: a group that has nothing to do by now idles, and not one that
  // was without work in between. What attempts that ended have used, of the groups for which that
  // has changed since the last call; nullopt: it is forgotten.
  std::map<std::string, std::optional<absl::Duration>> TakeChanges();
  // What was handed out, by a process before this one. Once, after all that waits and runs is told
  // of.
  void Restore(const std::map<std::string, absl::Duration>& used);

  // Smaller is sooner: time used, then tasks running.
  using Rank = std::tuple<absl::Duration, int>;
  Rank RankOf(const std::string& group, absl::Time now) const;

  // How many tasks of the group may run at once; -1: any number.
  int QuotaOf(const std::string& group) const;
  bool AtQuota(const std::string& group) const;

 private:
  struct Group {
    absl::Duration used;  // Of attempts that ended, and what it came back with.
    int waiting = 0;
    int running = 0;
    absl::Duration begun;  // Of what runs, since the epoch, together.
    bool idle = true;
    std::optional<absl::Duration> handed_out;  // Of `used`, last.

    bool active() const { return waiting > 0 || running > 0; }
    absl::Duration UsedBy(absl::Time now) const {
      return used + running * (now - absl::UnixEpoch()) - begun;
    }
  };

  Group& Activate(const std::string& group, absl::Time now);

  const std::map<std::string, int> quotas_;
  std::map<std::string, Group> groups_;
  std::set<std::string> touched_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_FAIR_SHARE_H_
