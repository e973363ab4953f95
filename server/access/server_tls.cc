#include "server/access/server_tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "common/logging.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

// gRPC's C++ interface takes certificates once; its core asks for them at every handshake, which is
// what this makes use of.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(const ServerTls* tls) : tls_(tls) {
    const bool client_certificates = !tls->identity()->client_ca_pem.empty();
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            client_certificates ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &ReloadingCredentials::Fetch, this));
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // Called by gRPC with a lock held, one at a time for each port.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->FetchNew(config);
  }

  grpc_ssl_certificate_config_reload_status FetchNew(grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const TlsIdentity> identity = tls_->identity();
    absl::MutexLock lock(&mutex_);
    if (identity == last_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {identity->key_pem.c_str(),
                                             identity->certificate_pem.c_str()};
    // gRPC wants some, even where clients are not asked for certificates and none is looked at.
    const std::string& client_ca =
        identity->client_ca_pem.empty() ? identity->certificate_pem : identity->client_ca_pem;
    *config = grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
    last_ = identity;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const ServerTls* const tls_;
  grpc_server_credentials* credentials_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsIdentity> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServerTls>> ServerTls::Load(TlsFiles files, Clock* clock) {
  std::unique_ptr<ServerTls> tls(new ServerTls(std::move(files), clock));
  PLUMBLINE_RETURN_IF_ERROR(tls->Reload());
  return tls;
}

absl::Status ServerTls::Reload() {
  PLUMBLINE_ASSIGN_OR_RETURN(TlsIdentity identity, LoadTlsIdentity(files_, clock_->Now()));
  absl::MutexLock lock(&mutex_);
  if (identity_ != nullptr && identity_->certificate_pem == identity.certificate_pem &&
      identity_->key_pem == identity.key_pem &&
      identity_->client_ca_pem == identity.client_ca_pem) {
    return absl::OkStatus();
  }
  if (identity.others_may_read_key) {
    Log(LogLevel::kWarning, "the TLS key can be read by everybody; chmod 600 it",
        {{"file", files_.key}});
  }
  identity_ = std::make_shared<const TlsIdentity>(std::move(identity));
  return absl::OkStatus();
}

std::shared_ptr<const TlsIdentity> ServerTls::identity() const {
  absl::MutexLock lock(&mutex_);
  return identity_;
}

std::shared_ptr<grpc::ServerCredentials> ServerTls::Credentials(const ServerTls* tls) {
  return std::make_shared<ReloadingCredentials>(tls);
}

}  // namespace plumbline::server
