#ifndef PLUMBLINE_SERVER_SCHEDULER_GENERATION_VALIDATION_H_
#define PLUMBLINE_SERVER_SCHEDULER_GENERATION_VALIDATION_H_

#include "proto/plumbline/v1/job.pb.h"
#include "server/scheduler/spec_checker.h"

// Generations, what replays a step of one, and what decodes latents.

namespace plumbline::server {

// Each puts the defaults in and adds what is wrong. What other jobs and runs are named is checked
// where they can be looked up.
void CheckGeneration(v1::JobSpec* spec, SpecChecker* checker);
void CheckDiagnostic(v1::JobSpec* spec, SpecChecker* checker);
void CheckDecode(v1::JobSpec* spec, SpecChecker* checker);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_GENERATION_VALIDATION_H_
