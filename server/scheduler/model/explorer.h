#ifndef PLUMBLINE_SERVER_SCHEDULER_MODEL_EXPLORER_H_
#define PLUMBLINE_SERVER_SCHEDULER_MODEL_EXPLORER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/scheduler/model/lease_model.h"

namespace plumbline::server {

// What was found in all histories within the limits.
struct Exploration {
  int64_t states = 0;
  int64_t transitions = 0;
  int64_t completed = 0;           // States in which a task was done ...
  int64_t refused = 0;             // ... a stale call was refused ...
  int64_t resumed = 0;             // ... and the coordinator had come back.
  bool complete = false;           // Nothing was left out for want of `max_states`.
  std::string violation;           // Empty, or what was broken first ...
  std::vector<std::string> trace;  // ... and how it came to that, in as few actions as possible.
};

// Explores every history within the limits, breadth first, until something is broken.
Exploration Explore(ModelLimits limits, PlantedBug bug, int64_t max_states);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_MODEL_EXPLORER_H_
