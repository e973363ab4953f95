#ifndef PLUMBLINE_SERVER_SCHEDULER_FULL_MODEL_VALIDATION_H_
#define PLUMBLINE_SERVER_SCHEDULER_FULL_MODEL_VALIDATION_H_

#include "proto/plumbline/v1/job.pb.h"
#include "server/scheduler/spec_checker.h"

// The full model, what judges it, and what its verdicts are recomputed from.

namespace plumbline::server {

// Each puts the defaults in and adds what is wrong.
void CheckFullModel(v1::JobSpec* spec, SpecChecker* checker);
void CheckSweep(v1::JobSpec* spec, SpecChecker* checker);
void CheckRule(const v1::JobSpec& spec, SpecChecker* checker);
void CheckVerdict(const v1::JobSpec& spec, SpecChecker* checker);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_FULL_MODEL_VALIDATION_H_
