#include "common/tls/test_certificates.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace plumbline {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string PemOf(X509* certificate) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  Require(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return Contents(bio.get());
}

std::string PemOf(EVP_PKEY* key) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  Require(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Contents(bio.get());
}

void Extend(X509* certificate, X509* issuer, int extension, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, extension, value);
  Require(made != nullptr && X509_add_ext(certificate, made, -1) == 1);
  X509_EXTENSION_free(made);
}

Key NewKey(const std::string& kind) {
  absl::string_view bits = kind;
  int rsa_bits = 0;
  if (absl::ConsumePrefix(&bits, "RSA-")) {
    Require(absl::SimpleAtoi(bits, &rsa_bits));
    return Key(EVP_RSA_gen(static_cast<unsigned>(rsa_bits)));
  }
  if (kind == "ED25519") return Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  return Key(EVP_EC_gen(kind.c_str()));
}

Certificate New(const std::vector<std::string>& common_names, long serial, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_set_pubkey(certificate.get(), key);
  for (const std::string& name : common_names) {
    Require(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN",
                                       MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(name.data()),
                                       static_cast<int>(name.size()), -1, 0) == 1);
  }
  return certificate;
}

void SetTimes(X509* certificate, absl::Time from, absl::Time until) {
  Require(ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(from)) != nullptr);
  Require(ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(until)) != nullptr);
}

}  // namespace

struct TestAuthority::Impl {
  Key key;
  Certificate certificate;
  std::string pem;
  long last_serial = 1;
};

TestAuthority::TestAuthority(const std::string& key) : impl_(std::make_unique<Impl>()) {
  impl_->key = NewKey(key);
  impl_->certificate = New({"Test authority"}, 1, impl_->key.get());
  X509* const certificate = impl_->certificate.get();
  SetTimes(certificate, absl::UnixEpoch(), absl::FromUnixSeconds(4'000'000'000));
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  Extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate, certificate, NID_key_usage, "critical,keyCertSign");
  Extend(certificate, certificate, NID_subject_key_identifier, "hash");
  Require(X509_sign(certificate, impl_->key.get(), EVP_sha256()) > 0);
  impl_->pem = PemOf(certificate);
}

TestAuthority::~TestAuthority() = default;
const std::string& TestAuthority::certificate() const { return impl_->pem; }

TestCertificate TestAuthority::Issue(const TestSubject& subject) {
  const Key key = NewKey(subject.key);
  const Certificate certificate = New(subject.common_names, ++impl_->last_serial, key.get());
  SetTimes(certificate.get(), subject.from, subject.until);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(impl_->certificate.get()));
  Extend(certificate.get(), impl_->certificate.get(), NID_subject_alt_name,
         subject.alternative_names.c_str());
  Extend(certificate.get(), impl_->certificate.get(), NID_authority_key_identifier, "keyid");
  Require(X509_sign(certificate.get(), impl_->key.get(),
                    EVP_get_digestbyname(subject.digest.c_str())) > 0);
  return {PemOf(certificate.get()), PemOf(key.get())};
}

TestCertificate TestAuthority::Issue(const std::string& common_name, absl::Time from,
                                     absl::Time until) {
  TestSubject subject;
  subject.common_names = {common_name};
  subject.from = from;
  subject.until = until;
  return Issue(subject);
}

long SerialPresented(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  long serial = 0;
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    SSL_set_fd(ssl, socket);
    if (SSL_connect(ssl) == 1) {
      const Certificate certificate(SSL_get1_peer_certificate(ssl));
      serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate.get()));
    }
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  close(socket);
  return serial;
}

}  // namespace plumbline
