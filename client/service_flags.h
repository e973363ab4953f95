#ifndef PLUMBLINE_CLIENT_SERVICE_FLAGS_H_
#define PLUMBLINE_CLIENT_SERVICE_FLAGS_H_

#include "client/command_tree.h"

// Commands that look at what a coordinator has, and steer it.

namespace plumbline::client {

void AddJobs(CommandTree* tree);
void AddReport(CommandTree* tree);
void AddWorkers(CommandTree* tree);
void AddRuns(CommandTree* tree);
void AddFaults(CommandTree* tree);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SERVICE_FLAGS_H_
