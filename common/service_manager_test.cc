#include "common/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace plumbline {
namespace {

// A socket that datagrams come to, as a service manager's.
class Listener {
 public:
  explicit Listener(const std::string& name)
      : name_(name), descriptor_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&address),
                   offsetof(sockaddr_un, sun_path) + name.size()),
              0);
  }

  ~Listener() {
    close(descriptor_);
    if (name_[0] == '/') unlink(name_.c_str());
  }

  // What came; empty if nothing did. What is sent over such a socket is there when the sender has
  // returned.
  std::string Received() const {
    char bytes[256];
    const ssize_t size = recv(descriptor_, bytes, sizeof(bytes), 0);
    return size < 0 ? "" : std::string(bytes, size);
  }

 private:
  const std::string name_;
  const int descriptor_;
};

TEST(ServiceManagerTest, TellsASocketOfEitherKind) {
  for (const std::string& name : {absl::StrCat("/tmp/plumbline-notify-", getpid()),
                                  absl::StrCat("@plumbline-notify-", getpid())}) {
    const Listener listener(name);
    const absl::Status status = ServiceManager(name).Send("READY=1\nSTATUS=serving");
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(listener.Received(), "READY=1\nSTATUS=serving");
  }
}

TEST(ServiceManagerTest, TakesTheSocketFromTheEnvironment) {
  const std::string name = absl::StrCat("@plumbline-environment-", getpid());
  const Listener listener(name);
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  EXPECT_TRUE(ServiceManager::FromEnvironment().Send("STOPPING=1").ok());
  EXPECT_EQ(listener.Received(), "STOPPING=1");
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(ServiceManager::FromEnvironment().Send("READY=1").ok());
  EXPECT_EQ(listener.Received(), "");
}

TEST(ServiceManagerTest, ManagerThatIsGoneOrNeverWasIsAnError) {
  EXPECT_EQ(ServiceManager("/nowhere/notify").Send("READY=1").code(), absl::StatusCode::kNotFound);
  for (const std::string& name : {std::string("vsock:2:1234"), "/" + std::string(200, 'x')}) {
    const absl::Status status = ServiceManager(name).Send("READY=1");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("NOTIFY_SOCKET"), absl::string_view::npos) << status;
  }
}

TEST(ServiceManagerTest, DoesNotWaitForAManagerThatReadsNothing) {
  const std::string name = absl::StrCat("@plumbline-full-", getpid());
  const Listener listener(name);
  const ServiceManager manager(name);
  absl::Status status;
  // Linux queues ten datagrams or so; a socket that waited would hang here.
  for (int i = 0; i < 100000 && status.ok(); ++i) status = manager.Send("STATUS=busy");
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace plumbline
