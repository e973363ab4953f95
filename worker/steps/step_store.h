#ifndef PLUMBLINE_WORKER_STEPS_STEP_STORE_H_
#define PLUMBLINE_WORKER_STEPS_STEP_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "proto/plumbline/v1/identity.pb.h"

// Where a generation keeps its steps. No dependency on the network, so that jobs are tested without
// one.

namespace plumbline::steps {

// What every step of one run is stored with.
struct RunFacts {
  v1::RunIdentity identity;
  uint64_t seed = 0;
  int32_t total_steps = 0;
  bool preflight = false;
  // Its steps are decoded clips, of the latents of another run, or of a file if that is empty.
  bool decodes = false;
  std::string decode_of = {};
};

// A step with its bytes: `tensors` are those of record.outputs, in order, row-major and
// little-endian.
struct SavedStep {
  v1::StepRecord record;
  std::vector<std::string> tensors;
};

// The steps of runs. One thread at a time, that of the job; TakeAcknowledged() may be called beside
// Fetch().
class StepStore {
 public:
  virtual ~StepStore() = default;

  // A run with the records of its steps, quarantined ones too. NOT_FOUND: it has none.
  virtual absl::StatusOr<v1::Run> GetRun(const std::string& run) = 0;

  // Makes a run known before its first step is saved, so that it can be looked at, or be given the
  // steps of another identity. Errors as Save's.
  virtual absl::Status Begin(const RunFacts& facts) = 0;

  // Hands over steps [first, first + count), in order; whoever waits for them is not held up by
  // those that follow. Ends early, with OK, at the first one whose bytes cannot be had. An error of
  // `sink` ends it. DATA_LOSS: a step's bytes are not what its record says.
  virtual absl::Status Fetch(const std::string& run, int32_t first, int32_t count,
                             absl::FunctionRef<absl::Status(SavedStep step)> sink) = 0;

  // Begins to save a step, once the one before it is acknowledged, and returns: so at most one step
  // waits for its acknowledgement while the next one is computed. A step is saved only when it was
  // acknowledged. An error, also of an earlier step, means that nothing more can be saved:
  // CANCELLED if the attempt must stop, DATA_LOSS if the same step was there with other bytes.
  virtual absl::Status Save(const RunFacts& facts, SavedStep step) = 0;

  // Waits until all steps are acknowledged. Errors as Save's.
  virtual absl::Status Flush() = 0;

  // Records of the steps acknowledged since the last call. Does not wait.
  virtual std::vector<v1::StepRecord> TakeAcknowledged() = 0;
};

}  // namespace plumbline::steps

#endif  // PLUMBLINE_WORKER_STEPS_STEP_STORE_H_
