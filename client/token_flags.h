#ifndef PLUMBLINE_CLIENT_TOKEN_FLAGS_H_
#define PLUMBLINE_CLIENT_TOKEN_FLAGS_H_

#include "client/command_tree.h"

// `plumbline token ...`.

namespace plumbline::client {

void AddToken(CommandTree* tree);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_TOKEN_FLAGS_H_
