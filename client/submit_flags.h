#ifndef PLUMBLINE_CLIENT_SUBMIT_FLAGS_H_
#define PLUMBLINE_CLIENT_SUBMIT_FLAGS_H_

#include "client/command_tree.h"

// `plumbline submit ...`.

namespace plumbline::client {

void AddSubmitCommands(CommandTree* tree);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SUBMIT_FLAGS_H_
