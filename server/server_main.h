// plumbline-server: keeps jobs, hands them to workers, and serves what they found.
#ifndef PLUMBLINE_SERVER_SERVER_MAIN_H_
#define PLUMBLINE_SERVER_SERVER_MAIN_H_

namespace plumbline::server {

// The program; its exit status.
int ServerMain(int argc, char** argv);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SERVER_MAIN_H_
