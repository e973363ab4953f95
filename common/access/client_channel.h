#ifndef PLUMBLINE_COMMON_ACCESS_CLIENT_CHANNEL_H_
#define PLUMBLINE_COMMON_ACCESS_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grpc {
class Channel;
class ChannelArguments;
class ChannelCredentials;
}  // namespace grpc

namespace plumbline {

// What a client shows to a server; all are paths, "" where there is none.
struct ClientFiles {
  std::string token_file;  // Holds a bearer token, which is sent with every call.
  std::string ca;          // PEM: who may sign the server's certificate. Any TLS file turns TLS on.
  std::string cert;        // PEM of the client, with `key`: mutual TLS.
  std::string key;
};

// Makes channels to one server, each with the token and under TLS. The files are read again when
// they have been replaced: the token's within a second, the others' before the next connection.
// Any thread may call.
class ClientChannels {
 public:
  // `server`: HOST:PORT or unix:PATH. INVALID_ARGUMENT, naming the flag (--token-file, --ca,
  // --cert, --key), for a file that cannot be used (as CheckIdentity says), one of --cert and --key
  // without the other, and a token over a connection without TLS to another machine.
  static absl::StatusOr<ClientChannels> Load(const std::string& server, const ClientFiles& files);

  std::shared_ptr<grpc::Channel> Connect(const grpc::ChannelArguments& arguments) const;

  // For a channel that is not connected: what is wrong with the files or the server, as far as it
  // can be told (CheckConnection). Takes seconds at most.
  absl::Status WhyNotConnected() const;

 private:
  class Token;

  std::string server_;
  ClientFiles files_;
  std::shared_ptr<Token> token_;  // Null: there is none.
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ACCESS_CLIENT_CHANNEL_H_
