#ifndef PLUMBLINE_CLIENT_CONNECTOR_H_
#define PLUMBLINE_CLIENT_CONNECTOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace plumbline::client {

// Where a coordinator is found. One thread.
class Connector {
 public:
  virtual ~Connector() = default;

  // A channel to the coordinator; called again each time the connection was lost, when the
  // coordinator may be somewhere else. It need not be connected yet.
  virtual absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() = 0;

  // For a channel that does not get connected: what is wrong with it and stays wrong, e.g. a
  // certificate that is not trusted; OK where nothing can be told.
  virtual absl::Status WhyNotConnected() const { return absl::OkStatus(); }

  // Whether the coordinator lives in a process of this user's command line, so that it reads this
  // machine's files and ends with the last command.
  virtual bool is_embedded() const = 0;

  // For messages, e.g. "the server at host:50051".
  virtual std::string Description() const = 0;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_CONNECTOR_H_
