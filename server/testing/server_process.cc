#include "server/testing/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/crash_point.h"
#include "common/files.h"
#include "nlohmann/json.hpp"

extern char** environ;

namespace plumbline::server {

ServerProcess::ServerProcess(const Options& options) {
  const std::string ready = absl::StrCat(options.folder, "/ready");
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  std::filesystem::remove(ready, error);
  std::vector<std::string> arguments = {
      options.program, absl::StrCat("--listen=", options.listen), "--http=127.0.0.1:0",
      absl::StrCat("--data-dir=", options.folder, "/data"), absl::StrCat("--ready-file=", ready)};
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> environment;
  std::string crash_point = absl::StrCat(kCrashPointVariable, "=", options.crash_point);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  if (!options.crash_point.empty()) environment.push_back(crash_point.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                   absl::StrCat(options.folder, "/log").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int spawned =
      posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    pid_ = 0;
    return;
  }
  const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
  while (!HasEnded() && SystemClock()->Now() < deadline) {
    const absl::StatusOr<std::string> text = ReadFile(ready, 1 << 16);
    if (text.ok()) {
      const nlohmann::json json = nlohmann::json::parse(*text);
      address_ = json["listen"].get<std::string>();
      http_address_ = json["http"].get<std::string>();
      return;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

ServerProcess::~ServerProcess() { Kill(); }

std::shared_ptr<grpc::Channel> ServerProcess::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A coordinator that comes back is found soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
}

void ServerProcess::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

int ServerProcess::Terminate() {
  if (pid_ == 0) return exit_status_;
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return exit_status_;
}

bool ServerProcess::HasEnded() {
  if (pid_ == 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = 0;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return true;
}

}  // namespace plumbline::server
