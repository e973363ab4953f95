#include "common/access/client_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/access/connection_check.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/host_and_port.h"
#include "common/status.h"
#include "common/tls/certificates.h"

namespace plumbline {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr absl::Duration kReadAgainAfter = absl::Seconds(1);
constexpr unsigned kWatchSeconds = 1;
constexpr absl::Duration kProbeLimit = absl::Seconds(1);

absl::Status CheckServer(absl::string_view server) {
  if (absl::StartsWith(server, "unix:") && server.size() > 5) return absl::OkStatus();
  return ParseHostAndPort(server, 1, "--server", "HOST:PORT, [IPV6]:PORT or unix:PATH").status();
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return FieldError("--token-file", text.status().message());
  std::string token(absl::StripAsciiWhitespace(*text));
  if (token.empty() || !std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return FieldError("--token-file", absl::StrCat(path, " holds no token"),
                      "one line, as `plumbline token create` prints it");
  }
  return token;
}

absl::StatusOr<PemFile> ReadPem(absl::string_view flag, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return FieldError(flag, text.status().message(), "a PEM file");
  return PemFile{flag, path, *std::move(text)};
}

// As far as it can be seen without a server.
absl::Status CheckTlsFiles(const ClientFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return FieldError(files.cert.empty() ? "--cert" : "--key", "missing",
                      "--cert and --key together");
  }
  if (!files.ca.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const PemFile ca, ReadPem("--ca", files.ca));
    // Some may be weak, as in a machine's own bundle: what they signed is not trusted.
    if (ParseCertificates(ca.text).empty()) {
      return FieldError("--ca", absl::StrCat(files.ca, " holds no certificate"), "a PEM file");
    }
  }
  if (files.cert.empty()) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const PemFile cert, ReadPem("--cert", files.cert));
  PLUMBLINE_ASSIGN_OR_RETURN(const PemFile key, ReadPem("--key", files.key));
  return CheckIdentity(cert, key, SystemClock()->Now());
}

}  // namespace

// The token of a file, read again when it may have changed.
class ClientChannels::Token {
 public:
  Token(std::string path, std::string token)
      : path_(std::move(path)), token_(std::move(token)), read_(SteadyClock()->Now()) {}

  std::string Get() {
    const absl::Time now = SteadyClock()->Now();
    absl::MutexLock lock(&mutex_);
    if (now - read_ > kReadAgainAfter) {
      // While the file is away, what it held stays.
      if (absl::StatusOr<std::string> token = ReadToken(path_); token.ok()) {
        token_ = *std::move(token);
      }
      read_ = now;
    }
    return token_;
  }

  // Adds the token to every call. Unlike call credentials it also works within this machine, where
  // there may be no TLS.
  class Interceptor final : public grpc::experimental::Interceptor {
   public:
    explicit Interceptor(std::shared_ptr<Token> token) : token_(std::move(token)) {}

    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      if (methods->QueryInterceptionHookPoint(
              grpc::experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
        methods->GetSendInitialMetadata()->emplace("authorization",
                                                   absl::StrCat("Bearer ", token_->Get()));
      }
      methods->Proceed();
    }

   private:
    const std::shared_ptr<Token> token_;
  };

  class Factory final : public grpc::experimental::ClientInterceptorFactoryInterface {
   public:
    explicit Factory(std::shared_ptr<Token> token) : token_(std::move(token)) {}
    grpc::experimental::Interceptor* CreateClientInterceptor(
        grpc::experimental::ClientRpcInfo*) override {
      return new Interceptor(token_);  // gRPC owns it.
    }

   private:
    const std::shared_ptr<Token> token_;
  };

 private:
  const std::string path_;
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Time read_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<ClientChannels> ClientChannels::Load(const std::string& server,
                                                    const ClientFiles& files) {
  PLUMBLINE_RETURN_IF_ERROR(CheckServer(server));
  ClientChannels channels;
  channels.server_ = server;
  channels.files_ = files;
  channels.credentials_ = grpc::InsecureChannelCredentials();
  PLUMBLINE_RETURN_IF_ERROR(CheckTlsFiles(files));
  const bool tls = !files.ca.empty() || !files.cert.empty();
  if (!files.token_file.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(std::string token, ReadToken(files.token_file));
    if (!tls && !IsLoopbackAddress(server)) {
      return FieldError("--token-file", "a token is sent to another machine only under TLS",
                        "--ca=FILE with it");
    }
    channels.token_ = std::make_shared<Token>(files.token_file, std::move(token));
  }
  if (tls) {
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
            files.key, files.cert, files.ca, kWatchSeconds));
    // Without --ca the machine's own authorities.
    if (!files.ca.empty()) options.watch_root_certs();
    if (!files.cert.empty()) options.watch_identity_key_cert_pairs();
    channels.credentials_ = grpc::experimental::TlsCredentials(options);
  }
  return channels;
}

std::shared_ptr<grpc::Channel> ClientChannels::Connect(
    const grpc::ChannelArguments& arguments) const {
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (token_ != nullptr) interceptors.push_back(std::make_unique<Token::Factory>(token_));
  return grpc::experimental::CreateCustomChannelWithInterceptors(server_, credentials_, arguments,
                                                                 std::move(interceptors));
}

absl::Status ClientChannels::WhyNotConnected() const {
  PLUMBLINE_RETURN_IF_ERROR(CheckTlsFiles(files_));
  return CheckConnection(server_, files_, kProbeLimit);
}

}  // namespace plumbline
