#ifndef PLUMBLINE_COMMON_TLS_TLS_IDENTITY_H_
#define PLUMBLINE_COMMON_TLS_TLS_IDENTITY_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace plumbline {

// PEM files of a server.
struct TlsFiles {
  std::string certificate;  // With the certificates between it and the root, if any.
  std::string key;
  std::string client_ca;  // Who may sign clients' certificates; "": clients need none.
};

// What is in them. A secret.
struct TlsIdentity {
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;
  bool others_may_read_key = false;  // The key's file; worth a warning.
};

// Reads and checks them as CheckIdentity and CheckAuthorities do. INVALID_ARGUMENT naming
// "tls-cert", "tls-key" or "tls-client-ca", also for a key that others than its owner may write.
absl::StatusOr<TlsIdentity> LoadTlsIdentity(const TlsFiles& files, absl::Time now);

// The identity to use for a handshake that begins now. Any thread may call.
using TlsSource = std::function<std::shared_ptr<const TlsIdentity>()>;

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_TLS_TLS_IDENTITY_H_
