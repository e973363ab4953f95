#ifndef PLUMBLINE_SERVER_STORE_TESTING_STEP_STORE_HARNESS_H_
#define PLUMBLINE_SERVER_STORE_TESTING_STEP_STORE_HARNESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/step_store.h"
#include "server/store/step_upload.h"

namespace plumbline::server {

// A step whose bytes follow from its run's seed and its index, as a worker would offer it.
struct TestStep {
  v1::PutStepRequest::Header header;
  std::vector<std::string> outputs;
};

// `kernel`: one part of the run's identity, so that other values make other runs.
TestStep MakeTestStep(uint64_t seed, int32_t index, absl::string_view kernel = "k",
                      int64_t video_bytes = 20000);
// The ID of that run.
std::string RunIdOf(uint64_t seed, absl::string_view kernel = "k");

// Identity of a run of these parts, "NAME=VALUE", sorted by name. `salt` changes the digest alone,
// as another way to make one would.
v1::RunIdentity MakeIdentity(const std::vector<std::string>& parts, absl::string_view salt = "");

// A store with a step store on it, and a lease to write under.
class StepStoreHarness {
 public:
  // Opens, or opens again what is at `options.path`.
  absl::Status Open(StoreOptions options, StepStoreOptions step_options = {});
  void Close();

  // Grants another lease of the one task; older tokens are refused from here on.
  absl::Status Grant();
  // Puts it under the newest lease, or under another token.
  absl::StatusOr<v1::PutStepResponse> Put(const TestStep& step, int64_t token = 0);
  absl::Status PutRun(const TestStep& step);

  Store& store() { return *store_; }
  StepStore& steps() { return *steps_; }
  int64_t token() const { return token_; }

 private:
  std::unique_ptr<Store> store_;
  std::unique_ptr<StepStore> steps_;
  int64_t token_ = 0;
};

// Flips one bit of `bytes` where they lie in a blob file under `folder`. Whether they were found.
bool FlipBitInBlobFile(const std::string& folder, absl::string_view bytes);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_TESTING_STEP_STORE_HARNESS_H_
