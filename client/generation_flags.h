#ifndef PLUMBLINE_CLIENT_GENERATION_FLAGS_H_
#define PLUMBLINE_CLIENT_GENERATION_FLAGS_H_

#include "client/command_line.h"

namespace CLI {
class App;
}  // namespace CLI

namespace plumbline::client {

// Adds the flags that only generations have to `command`, bound to `flags`, which outlives it.
void AddGenerationFlags(CLI::App* command, SubmitGeneration* flags);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_GENERATION_FLAGS_H_
