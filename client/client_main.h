// plumbline: the command line.
#ifndef PLUMBLINE_CLIENT_CLIENT_MAIN_H_
#define PLUMBLINE_CLIENT_CLIENT_MAIN_H_

namespace plumbline::client {

// The program; its exit status.
int ClientMain(int argc, char** argv);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_CLIENT_MAIN_H_
