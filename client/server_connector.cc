#include "client/server_connector.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr size_t kMaxCredentialBytes = 1 << 20;

absl::StatusOr<std::string> ReadFlagFile(absl::string_view flag, const std::string& path) {
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> contents = ReadFile(path, kMaxCredentialBytes);
  if (!contents.ok()) return FieldError(flag, contents.status().message());
  return contents;
}

bool IsOnThisMachine(absl::string_view server) {
  return absl::StartsWith(server, "unix:") || absl::StartsWith(server, "localhost:") ||
         absl::StartsWith(server, "127.") || absl::StartsWith(server, "[::1]:");
}

// Adds the token to every call. Unlike call credentials it also works within this machine, where
// there is no TLS.
class TokenInterceptor : public grpc::experimental::Interceptor {
 public:
  explicit TokenInterceptor(std::string header) : header_(std::move(header)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", header_);
    }
    methods->Proceed();
  }

 private:
  const std::string header_;
};

class TokenInterceptorFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptorFactory(const std::string& token)
      : header_(absl::StrCat("Bearer ", token)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(header_);  // gRPC owns it.
  }

 private:
  const std::string header_;
};

class ServerConnector : public Connector {
 public:
  ServerConnector(std::string server, std::string token,
                  std::shared_ptr<grpc::ChannelCredentials> credentials)
      : server_(std::move(server)),
        token_(std::move(token)),
        credentials_(std::move(credentials)) {}

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() override {
    grpc::ChannelArguments arguments;
    // A coordinator that vanished with its machine is noticed within half a minute.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
    // Another channel of this process must not hand us its broken connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
        interceptors;
    if (!token_.empty()) interceptors.push_back(std::make_unique<TokenInterceptorFactory>(token_));
    return grpc::experimental::CreateCustomChannelWithInterceptors(server_, credentials_, arguments,
                                                                   std::move(interceptors));
  }

  bool is_embedded() const override { return false; }
  std::string Description() const override { return absl::StrCat("the server at ", server_); }

 private:
  const std::string server_;
  const std::string token_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connector>> NewServerConnector(const ServerFlags& flags) {
  PLUMBLINE_ASSIGN_OR_RETURN(std::string token, ReadFlagFile("--token-file", flags.token_file));
  PLUMBLINE_ASSIGN_OR_RETURN(std::string ca, ReadFlagFile("--ca", flags.ca));
  PLUMBLINE_ASSIGN_OR_RETURN(std::string cert, ReadFlagFile("--cert", flags.cert));
  PLUMBLINE_ASSIGN_OR_RETURN(std::string key, ReadFlagFile("--key", flags.key));
  if (flags.cert.empty() != flags.key.empty()) {
    return FieldError(flags.cert.empty() ? "--cert" : "--key", "missing",
                      "--cert and --key together");
  }
  const bool tls = !flags.ca.empty() || !flags.cert.empty();
  token = std::string(absl::StripAsciiWhitespace(token));
  if (!token.empty() && !tls && !IsOnThisMachine(flags.server)) {
    return FieldError("--token-file", "a token is sent to another machine only under TLS",
                      "--ca=FILE with it");
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (tls) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = std::move(ca);
    options.pem_cert_chain = std::move(cert);
    options.pem_private_key = std::move(key);
    credentials = grpc::SslCredentials(options);
  }
  return std::make_unique<ServerConnector>(flags.server, std::move(token), std::move(credentials));
}

}  // namespace plumbline::client
