#ifndef PLUMBLINE_CLIENT_FILE_FLAGS_H_
#define PLUMBLINE_CLIENT_FILE_FLAGS_H_

#include "client/command_tree.h"

// Commands upon files, each a job of its own kind.

namespace plumbline::client {

void AddRule(CommandTree* tree);
void AddVerdict(CommandTree* tree);  // And `verify`.
void AddCompare(CommandTree* tree);
void AddCompareMedia(CommandTree* tree);
void AddDecode(CommandTree* tree);
void AddLayout(CommandTree* tree);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_FILE_FLAGS_H_
