// Specifications of jobs.
#include "proto/plumbline/v1/job.pb.h"
#include "server/proto_util.h"
#include "server/scheduler/job_validation.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  v1::JobSpec spec;
  if (!spec.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto known = [](const std::string& name) { return name.size() % 2 == 0; };
  const absl::Status status = server::ValidateSpec(known, nullptr, &spec);
  if (!status.ok()) return 0;
  // What was made canonical stays as it is.
  v1::JobSpec again = spec;
  FUZZ_REQUIRE(server::ValidateSpec(known, nullptr, &again).ok());
  FUZZ_REQUIRE(server::DeterministicBytes(again) == server::DeterministicBytes(spec));
  return 0;
}
