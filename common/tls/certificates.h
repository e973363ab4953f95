// Certificates and keys in PEM, and which of them may be used for TLS.
#ifndef PLUMBLINE_COMMON_TLS_CERTIFICATES_H_
#define PLUMBLINE_COMMON_TLS_CERTIFICATES_H_

#include <openssl/x509.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace plumbline {

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Certificate = std::unique_ptr<X509, FreeX509>;

// What a PEM file holds, and how messages name it.
struct PemFile {
  absl::string_view field;  // The flag, e.g. "tls-cert".
  std::string path;
  std::string text;
};

// All certificates of `pem`; none if one of them cannot be read: whoever uses the file would
// stumble over it.
std::vector<Certificate> ParseCertificates(const std::string& pem);

// INVALID_ARGUMENT, naming the field and the file, unless they can be used for TLS at `now`: the
// first certificate is valid, `key` is its key, and no certificate has a key or a signature that
// peers refuse for its weakness. OpenSSL and gRPC would say it in lines of their own, or only when
// somebody connects.
absl::Status CheckIdentity(const PemFile& certificate, const PemFile& key, absl::Time now);

// The same of authorities: that there is one, and that their keys are strong enough.
absl::Status CheckAuthorities(const PemFile& authorities);

// The name by which a certificate's owner is known: its one common name. Nothing where it has none,
// or several, of which each program would take another.
std::optional<std::string> CommonNameOf(const X509* certificate);

// The names and addresses of hosts that it is for, as printable ASCII; "none" if there are none.
std::vector<std::string> HostNamesOf(const X509* certificate);

// "CN=server, O=Example", whatever the names hold as printable ASCII.
std::string SubjectText(const X509* certificate);
std::string IssuerText(const X509* certificate);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_TLS_CERTIFICATES_H_
