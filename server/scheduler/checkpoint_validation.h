#ifndef PLUMBLINE_SERVER_SCHEDULER_CHECKPOINT_VALIDATION_H_
#define PLUMBLINE_SERVER_SCHEDULER_CHECKPOINT_VALIDATION_H_

#include "proto/plumbline/v1/job.pb.h"
#include "server/scheduler/spec_checker.h"

// Checks of what a worker has: its checkpoints, and itself.

namespace plumbline::server {

// Each adds what is wrong.
void CheckCheckpoint(const v1::JobSpec& spec, SpecChecker* checker);
void CheckSelftest(const v1::JobSpec& spec, SpecChecker* checker);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_CHECKPOINT_VALIDATION_H_
