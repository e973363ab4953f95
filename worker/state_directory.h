#ifndef PLUMBLINE_WORKER_STATE_DIRECTORY_H_
#define PLUMBLINE_WORKER_STATE_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/random_id.h"

namespace plumbline::worker {

// What a worker keeps on its machine: who it is, over restarts; files that it fetched; files of
// the task that runs. One process uses a folder at a time.
class StateDirectory {
 public:
  // Makes what is not there, for its owner alone. A new worker's id comes from `ids`.
  // FAILED_PRECONDITION with reason IN_USE if another process uses the folder.
  static absl::StatusOr<std::unique_ptr<StateDirectory>> Open(const std::string& path,
                                                              IdSource* ids);
  ~StateDirectory();  // Lets another process have it.
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  const std::string& worker_id() const { return worker_id_; }
  std::string cache_folder() const { return path_ + "/cache"; }
  // Of tensors of saved steps.
  std::string steps_folder() const { return path_ + "/steps"; }

  // Of copies of plug-ins.
  std::string plugins_folder() const { return path_ + "/plugins"; }

  // Empties and returns the folder of the task that runs.
  absl::StatusOr<std::string> NewTaskFolder();

 private:
  StateDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  absl::Status ReadOrMakeId(IdSource* ids);

  const std::string path_;
  const int lock_;  // Descriptor of the locked file.
  std::string worker_id_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_STATE_DIRECTORY_H_
