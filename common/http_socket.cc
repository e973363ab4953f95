#include "common/http_socket.h"

#include <openssl/ssl.h>

#include "common/tls/certificates.h"

namespace plumbline::http_internal {

std::string Socket::PeerName() {
  const Certificate certificate(SSL_get1_peer_certificate(std::get<Tls>(stream_).native_handle()));
  return certificate == nullptr ? "" : CommonNameOf(certificate.get()).value_or("");
}

}  // namespace plumbline::http_internal
