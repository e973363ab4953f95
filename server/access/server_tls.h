#ifndef PLUMBLINE_SERVER_ACCESS_SERVER_TLS_H_
#define PLUMBLINE_SERVER_ACCESS_SERVER_TLS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "common/tls/tls_identity.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace plumbline::server {

// The server's certificate, its key, and who may sign those of clients. Handshakes use what was
// loaded last; connections that are open go on with what they began with. Any thread may call.
class ServerTls {
 public:
  // `clock` must outlive it. INVALID_ARGUMENT as of LoadTlsIdentity.
  static absl::StatusOr<std::unique_ptr<ServerTls>> Load(TlsFiles files, Clock* clock);

  std::shared_ptr<const TlsIdentity> identity() const;

  // Credentials of a gRPC server that ask for identity() at each handshake. `tls` must outlive the
  // server.
  static std::shared_ptr<grpc::ServerCredentials> Credentials(const ServerTls* tls);

  // Reads the files again. Files that do not fit together, as while they are being replaced, change
  // nothing: their error.
  absl::Status Reload();

 private:
  ServerTls(TlsFiles files, Clock* clock) : files_(std::move(files)), clock_(clock) {}

  const TlsFiles files_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const TlsIdentity> identity_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_SERVER_TLS_H_
