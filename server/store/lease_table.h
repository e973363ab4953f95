#ifndef PLUMBLINE_SERVER_STORE_LEASE_TABLE_H_
#define PLUMBLINE_SERVER_STORE_LEASE_TABLE_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/store/keys.h"
#include "server/store/write_set.h"

namespace plumbline::server {

// Which token each task's writes must carry: the fence at the entry of the store's write path.
// Every set passes it in the order in which sets become durable, so no write under a token can come
// to lie behind a grant of a newer one. One thread at a time.
class LeaseTable {
 public:
  // What the store holds, before anything else.
  void Restore(TaskKey task, int64_t token);
  void RestoreNewest(int64_t token) { newest_ = token; }

  // ABORTED (LEASE_LOST) unless `token` is the one that the task is held under.
  absl::Status Check(TaskKey task, int64_t token) const;

  // Checks every lease that `set` requires, then makes its grants and ends. After an error nothing
  // has changed: Check's, or INTERNAL for a grant under a token that is not larger than all before.
  absl::Status Admit(const WriteSet& set);

 private:
  absl::flat_hash_map<TaskKey, int64_t> tokens_;
  int64_t newest_ = 0;  // Ever granted.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_LEASE_TABLE_H_
