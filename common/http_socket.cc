#include "common/http_socket.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace plumbline::http_internal {

std::string Socket::PeerName() {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      SSL_get1_peer_certificate(std::get<Tls>(stream_).native_handle()), &X509_free);
  if (certificate == nullptr) return "";
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return "";
  unsigned char* text = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

}  // namespace plumbline::http_internal
