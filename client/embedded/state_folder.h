#ifndef PLUMBLINE_CLIENT_EMBEDDED_STATE_FOLDER_H_
#define PLUMBLINE_CLIENT_EMBEDDED_STATE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace plumbline::client {

// Where the environment puts the user's state: PLUMBLINE_STATE_DIR, else
// XDG_STATE_HOME/plumbline, else HOME/.local/state/plumbline. FAILED_PRECONDITION where none is
// set.
absl::StatusOr<std::string> StatePathFromEnvironment();

// What outlives the commands of one user: the embedded coordinator's store, the worker's cache, the
// lock that says which process is the coordinator, and the socket where it listens. All of it lies
// in a folder that only the user can enter. One thread.
class StateFolder {
 public:
  // Makes what is not there. FAILED_PRECONDITION for a folder of another user's, or one that others
  // can enter.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(const std::string& path);

  ~StateFolder();  // Gives the lock back.
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // Whether this process is now the one that may be the coordinator. The kernel gives the lock back
  // when the process ends, however it ends.
  absl::StatusOr<bool> TryLock();
  bool is_locked() const { return is_locked_; }

  std::string server_folder() const { return folder_ + "/server"; }
  std::string worker_folder() const { return folder_ + "/worker"; }
  std::string log_path() const { return folder_ + "/log"; }
  // gRPC's address of the socket. Where the path is too long for one, it goes through this
  // process's descriptor of the folder, and holds while this object exists.
  std::string socket_address() const;

 private:
  StateFolder(std::string folder, int folder_descriptor, int lock_descriptor)
      : folder_(std::move(folder)),
        folder_descriptor_(folder_descriptor),
        lock_descriptor_(lock_descriptor) {}

  const std::string folder_;
  const int folder_descriptor_;  // Owned.
  const int lock_descriptor_;    // Owned.
  bool is_locked_ = false;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_EMBEDDED_STATE_FOLDER_H_
