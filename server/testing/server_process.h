#ifndef PLUMBLINE_SERVER_TESTING_SERVER_PROCESS_H_
#define PLUMBLINE_SERVER_TESTING_SERVER_PROCESS_H_

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace plumbline::server {

// plumbline-server in a process of its own. One thread at a time.
class ServerProcess {
 public:
  struct Options {
    std::string program = "server/plumbline-server";
    // Its data lies in `folder`/data, its log in `folder`/log.
    std::string folder;
    std::string crash_point;  // As PLUMBLINE_CRASH_POINT; "": none.
    std::string listen = "127.0.0.1:0";
    std::vector<std::string> flags;
  };

  // Returns when it serves, or has ended, or a minute is over.
  explicit ServerProcess(const Options& options);
  ~ServerProcess();  // Kills it.
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // It came to serve.
  bool serves() const { return !address_.empty(); }
  const std::string& address() const { return address_; }
  const std::string& http_address() const { return http_address_; }
  pid_t pid() const { return pid_; }
  // A connection of its own each time.
  std::shared_ptr<grpc::Channel> Connect() const;

  void Kill();                                      // SIGKILL.
  int Terminate();                                  // SIGTERM; its exit status.
  bool HasEnded();                                  // By itself.
  int exit_status() const { return exit_status_; }  // Once it has ended: -1 by a signal.

 private:
  pid_t pid_ = 0;  // 0: it has ended.
  int exit_status_ = -1;
  std::string address_;
  std::string http_address_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_SERVER_PROCESS_H_
