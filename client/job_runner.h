#ifndef PLUMBLINE_CLIENT_JOB_RUNNER_H_
#define PLUMBLINE_CLIENT_JOB_RUNNER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/environment.h"
#include "client/exit_status.h"
#include "client/job_request.h"
#include "client/session.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// Makes a job, follows it, and delivers what it found. One thread.
class JobRunner {
 public:
  // All must outlive it. `server` is --server as it was typed, for the commands that it suggests.
  // `signing_key` is the file that bundles are signed with; empty: they are not.
  JobRunner(Session* session, const Environment* environment, std::string server,
            std::string signing_key);

  // Creates the job. Waits where the request or an embedded coordinator asks for that: prints the
  // report, writes files, and returns what the verdict makes of it; else prints the job's name. A
  // job that cannot be done, by its files or for want of memory, is deleted again, as if it had
  // been refused. The error of the job is this error.
  absl::StatusOr<ExitStatus> Run(const JobRequest& request);

  // Refuses what the coordinator can refuse without the files; makes nothing.
  absl::Status Validate(const JobRequest& request);

 private:
  absl::StatusOr<ExitStatus> Deliver(const JobRequest& request, const v1::Job& job);
  absl::Status WriteTensors(const JobRequest& request, const v1::Job& job);
  absl::Status WriteDifference(const JobRequest& request, const v1::Job& job);
  absl::Status WriteRule(const JobRequest& request, const v1::Job& job);
  absl::Status WriteOutputs(const JobRequest& request, const v1::Job& job);
  absl::Status WriteManifestFile(const JobRequest& request, const v1::Job& job);
  void Withdraw(const std::string& job);
  void TellInterrupted(const std::string& job) const;

  Session* const session_;
  const Environment* const environment_;
  const std::string server_;
  const std::string signing_key_;
};

// The whole report of a job, from all its pages.
absl::StatusOr<v1::Report> FetchReport(Session* session, const std::string& job);

// OK if the job SUCCEEDED; else the error with which it ended.
absl::Status ErrorOf(const v1::Job& job);

// `path` for the tensors of one of several tasks: "tensors.safetensors" with title "layout tiny" is
// "tensors-tiny.safetensors".
std::string PathForTask(const std::string& path, const std::string& title);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_JOB_RUNNER_H_
