#ifndef PLUMBLINE_WORKER_H3_PLAN_MEMORY_H_
#define PLUMBLINE_WORKER_H3_PLAN_MEMORY_H_

#include "absl/status/status.h"
#include "kernels/device.h"
#include "worker/h3/plan.h"

namespace plumbline::h3 {

// Gives every view of a plan whose operations, taps and shapes are chosen its place in device
// memory, decides where each gradient contribution goes, and binds the calls to them.
// RESOURCE_EXHAUSTED when the device's memory is too small.
absl::Status PlaceMemory(Plan& plan, Device& device);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PLAN_MEMORY_H_
