#ifndef PLUMBLINE_WORKER_DRIFT_GENERATION_VERDICT_H_
#define PLUMBLINE_WORKER_DRIFT_GENERATION_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/plumbline/v1/drift.pb.h"

namespace plumbline::drift {

inline constexpr char kSensitivityGate[] = "sensitivity";

// The verdict on a generation of `steps` steps: FAILED at its first failure, else PASSED.
// `qualifications` limit it.
v1::Verdict GenerationVerdict(uint64_t seed, int32_t steps,
                              const std::optional<v1::FirstFailure>& failure,
                              const std::vector<std::string>& qualifications);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_GENERATION_VERDICT_H_
