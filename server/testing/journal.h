#ifndef PLUMBLINE_SERVER_TESTING_JOURNAL_H_
#define PLUMBLINE_SERVER_TESTING_JOURNAL_H_

#include <grpcpp/grpcpp.h>

#include <fstream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::server {

// What a test did and what it met, a line each with the time, in a file: it is there to explain a
// run that stopped, so each line is written at once. Any thread may call.
class Journal {
 public:
  // Appends to the file. Lines are lost if it cannot be opened.
  explicit Journal(const std::string& path);

  // As "2026-01-02T03:04:05.678Z WHO: WHAT".
  void Note(absl::string_view who, absl::string_view what);

 private:
  absl::Mutex mutex_;
  std::ofstream file_ ABSL_GUARDED_BY(mutex_);
};

// Which call, to whom, with which status: "GetJob at ipv4:127.0.0.1:50051: UNAVAILABLE: closed".
// The call has been made with `context`.
std::string Describe(absl::string_view call, const grpc::ClientContext& context,
                     const grpc::Status& status);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_JOURNAL_H_
