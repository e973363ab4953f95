#include "common/tls/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/private_file.h"
#include "common/status.h"

namespace plumbline {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

std::unique_ptr<BIO, Free> BioOf(const std::string& text) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

using Certificate = std::unique_ptr<X509, Free>;

// No passphrase is asked for on a terminal, whatever a file says it needs.
int NoPassphrase(char*, int, int, void*) { return -1; }

// Empty if one of them cannot be read: whoever uses the file would stumble over it.
std::vector<Certificate> Certificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  const auto bio = BioOf(pem);
  ERR_clear_error();
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) certificates.clear();
  ERR_clear_error();
  return certificates;
}

absl::StatusOr<std::string> Read(const std::string& path, absl::string_view field) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return FieldError(field, text.status().message(), "a PEM file");
  return text;
}

}  // namespace

absl::StatusOr<TlsIdentity> LoadTlsIdentity(const TlsFiles& files, absl::Time now) {
  TlsIdentity identity;
  PLUMBLINE_ASSIGN_OR_RETURN(identity.certificate_pem, Read(files.certificate, "tls-cert"));
  absl::StatusOr<PrivateFile> key_file = ReadPrivateFile(files.key, kMaxBytes);
  if (!key_file.ok()) return FieldError("tls-key", key_file.status().message(), "a PEM file");
  identity.key_pem = std::move(key_file->text);
  identity.others_may_read_key = key_file->others_may_read;
  const std::vector<Certificate> chain = Certificates(identity.certificate_pem);
  if (chain.empty()) {
    return FieldError("tls-cert", absl::StrCat(files.certificate, " holds no certificate"),
                      "a PEM file");
  }
  const auto key_bio = BioOf(identity.key_pem);
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(key_bio.get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return FieldError("tls-key", absl::StrCat(files.key, " holds no private key"),
                      "a PEM file without a passphrase");
  }
  if (X509_check_private_key(chain[0].get(), key.get()) != 1) {
    ERR_clear_error();
    return FieldError("tls-key", absl::StrCat(files.key, " is not the key of the certificate in ",
                                              files.certificate));
  }
  time_t unix_now = absl::ToTimeT(now);
  if (X509_cmp_time(X509_get0_notAfter(chain[0].get()), &unix_now) <= 0) {
    return FieldError("tls-cert",
                      absl::StrCat("the certificate in ", files.certificate, " has expired"));
  }
  if (X509_cmp_time(X509_get0_notBefore(chain[0].get()), &unix_now) > 0) {
    return FieldError("tls-cert",
                      absl::StrCat("the certificate in ", files.certificate, " is not valid yet"));
  }
  if (!files.client_ca.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(identity.client_ca_pem, Read(files.client_ca, "tls-client-ca"));
    if (Certificates(identity.client_ca_pem).empty()) {
      return FieldError("tls-client-ca", absl::StrCat(files.client_ca, " holds no certificate"),
                        "a PEM file");
    }
  }
  return identity;
}

}  // namespace plumbline
