#ifndef PLUMBLINE_WORKER_JOBS_JOB_H_
#define PLUMBLINE_WORKER_JOBS_JOB_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/identity/kernel_identity.h"
#include "proto/plumbline/v1/artifact.pb.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/jobs/checkpoint_cache.h"
#include "worker/jobs/generation/environment.h"
#include "worker/jobs/job_context.h"

namespace plumbline::media {
struct FfmpegLibrary;
}

namespace plumbline::jobs {

// All that a task needs of the worker that does it. Owns nothing; everything outlives the task.
struct JobEnvironment {
  JobContext context;
  // What decides the worker's numbers besides the checkpoint: its build, and its run-time
  // libraries by name.
  const KernelIdentity* kernel_identity = nullptr;
  std::map<std::string, std::string> libraries;
  // What each plug-in that a composition may name puts into an identity, by its name.
  std::map<std::string, std::string> plugins;
  // Threads for work on files in the host's memory.
  int threads = 1;
  CheckpointCache* checkpoints = nullptr;
  // Brings a file to this machine: its path. `field` names it in errors.
  std::function<absl::StatusOr<std::string>(const v1::InputFile& file, absl::string_view field)>
      fetch;
  // An empty folder for the files that the task makes.
  std::string output_folder;
  GenerationEnvironment generation;
  // What reads and makes MP4, or why there is none here.
  absl::StatusOr<const media::FfmpegLibrary*> ffmpeg =
      absl::UnavailableError("FFmpeg is not in use");
};

// A file that a task made, to be stored as an artifact.
struct OutputFile {
  std::string path;
  v1::ArtifactRole role = v1::ARTIFACT_ROLE_UNSPECIFIED;
  std::string file_name;
  std::string media_type;
};

struct JobResult {
  v1::TaskReport report;  // Without artifacts and what the coordinator fills in.
  std::vector<OutputFile> files;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_JOB_H_
