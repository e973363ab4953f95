#include "common/tls/tls_identity.h"

#include <utility>

#include "common/files.h"
#include "common/private_file.h"
#include "common/status.h"
#include "common/tls/certificates.h"

namespace plumbline {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

absl::StatusOr<PemFile> Read(const std::string& path, absl::string_view field) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return FieldError(field, text.status().message(), "a PEM file");
  return PemFile{field, path, *std::move(text)};
}

}  // namespace

absl::StatusOr<TlsIdentity> LoadTlsIdentity(const TlsFiles& files, absl::Time now) {
  TlsIdentity identity;
  PLUMBLINE_ASSIGN_OR_RETURN(PemFile certificate, Read(files.certificate, "tls-cert"));
  absl::StatusOr<PrivateFile> key_file = ReadPrivateFile(files.key, kMaxBytes);
  if (!key_file.ok()) return FieldError("tls-key", key_file.status().message(), "a PEM file");
  identity.others_may_read_key = key_file->others_may_read;
  PemFile key{"tls-key", files.key, std::move(key_file->text)};
  PLUMBLINE_RETURN_IF_ERROR(CheckIdentity(certificate, key, now));
  identity.certificate_pem = std::move(certificate.text);
  identity.key_pem = std::move(key.text);
  if (!files.client_ca.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(PemFile client_ca, Read(files.client_ca, "tls-client-ca"));
    PLUMBLINE_RETURN_IF_ERROR(CheckAuthorities(client_ca));
    identity.client_ca_pem = std::move(client_ca.text);
  }
  return identity;
}

}  // namespace plumbline
