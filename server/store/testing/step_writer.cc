// Saves, spoils, saves again and deletes steps in the store FOLDER, and says on standard output
// what was acknowledged, a line each:
//   put SEED INDEX         the step is saved
//   spoil SEED INDEX       one of its bits is about to be flipped
//   delete SEED            the run is about to be deleted
// What is saved already is left alone, so that it can be run again after a crash.
//
//   step_writer FOLDER
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/testing/step_store_harness.h"

namespace plumbline::server {
namespace {

constexpr uint64_t kSeeds[] = {1, 2};
constexpr int32_t kSteps = 4;

void Say(const std::string& line) {
  const std::string text = absl::StrCat(line, "\n");
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(3);
}

absl::Status PutMissing(StepStoreHarness* harness, uint64_t seed) {
  for (int32_t index = 0; index < kSteps; ++index) {
    if (harness->steps().ReadStep(RunIdOf(seed), index).ok()) continue;
    const absl::Status status = harness->Put(MakeTestStep(seed, index)).status();
    if (!status.ok()) return status;
    Say(absl::StrCat("put ", seed, " ", index));
  }
  return absl::OkStatus();
}

absl::Status Write(const std::string& folder) {
  StoreOptions options;
  options.path = folder;
  StepStoreHarness harness;
  absl::Status status = harness.Open(options);
  for (const uint64_t seed : kSeeds) {
    if (status.ok()) status = PutMissing(&harness, seed);
  }
  if (!status.ok()) return status;
  Say("spoil 1 2");
  FlipBitInBlobFile(folder, MakeTestStep(1, 2).outputs[0]);
  status = PutMissing(&harness, 1);
  if (!status.ok()) return status;
  Say("delete 2");
  return harness.steps().DeleteRun(RunIdOf(2), v1::AuditEvent());
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const absl::Status status = plumbline::server::Write(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "step_writer: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
