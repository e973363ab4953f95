#include "common/access/connection_check.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/access/probe_socket.h"
#include "common/access/server_addresses.h"
#include "common/host_and_port.h"
#include "common/status.h"
#include "common/tls/certificates.h"

namespace plumbline {
namespace {

// How a client of HTTP/2 begins, with empty settings: RFC 9113, 3.4 and 6.5.
constexpr absl::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
constexpr char kTlsAlert = 0x15;  // RFC 8446, 5.1: the first byte of such a record.
constexpr unsigned char kProtocols[] = {2, 'h', '2'};
constexpr char kGrpcPort[] = "HOST:PORT of the server's --listen, e.g. HOST:7433";
constexpr char kAuthority[] = "--ca=FILE, the PEM file of whoever signed its certificate";

// What answered in plain text.
enum class Answer { kNothing, kHttp2, kHttp1, kTls, kOther };

// Whom a check is of.
struct Server {
  std::string name;  // As it was given.
  std::string host;  // Whose certificate it should show.
  ServerAddresses addresses;
};

Answer AnswerInPlainText(const Server& server, absl::Duration limit) {
  const auto socket = ProbeSocket::Connect(server.addresses, limit);
  if (socket == nullptr || !socket->Send(kPreface)) return Answer::kNothing;
  const std::string bytes = socket->Receive();
  if (bytes.empty()) return Answer::kNothing;
  if (bytes[0] == kTlsAlert) return Answer::kTls;
  if (absl::StartsWith(bytes, "HTTP/1")) return Answer::kHttp1;
  // A frame of settings comes first: RFC 9113, 6.5.
  if (bytes.size() >= 5 && bytes[3] == '\4') return Answer::kHttp2;
  return Answer::kOther;
}

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// One handshake, over buffers, so that nothing is written to a socket but by ProbeSocket.
class Handshake {
 public:
  // What it came to.
  struct Result {
    bool began = false;  // The other side spoke TLS.
    bool done = false;
    bool chose_http2 = false;
    long verified = X509_V_OK;  // X509_V_ERR_*.
    int alert = -1;             // That the other side ended it with: RFC 8446, 6.
    bool wants_certificate = false;
    // Without an answer, or an alert, as gRPC's servers do with certificates that they refuse.
    bool ended = false;
    Certificate certificate;
  };

  // Files that cannot be read are left out: gRPC would do without them too.
  Handshake(const std::string& host, const ClientFiles& files)
      : context_(SSL_CTX_new(TLS_client_method())) {
    if (files.ca.empty()) {
      SSL_CTX_set_default_verify_paths(context_.get());
    } else {
      SSL_CTX_load_verify_file(context_.get(), files.ca.c_str());
    }
    if (!files.cert.empty()) {
      SSL_CTX_use_certificate_chain_file(context_.get(), files.cert.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM);
    }
    // Called where the server asks for a certificate.
    SSL_CTX_set_cert_cb(
        context_.get(),
        [](SSL*, void* wants_certificate) {
          *static_cast<bool*>(wants_certificate) = true;
          return 1;
        },
        &wants_certificate_);
    ssl_.reset(SSL_new(context_.get()));
    BIO* const in = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl_.get(), in, BIO_new(BIO_s_mem()));  // It owns both.
    SSL_set_alpn_protos(ssl_.get(), kProtocols, sizeof(kProtocols));
    SSL_set_connect_state(ssl_.get());
    // So that it goes on, and the certificate is there to be shown: nothing secret is sent.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);
    in6_addr address;
    const bool is_address = inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                            inet_pton(AF_INET6, host.c_str(), &address) == 1;
    X509_VERIFY_PARAM* const parameters = SSL_get0_param(ssl_.get());
    // As gRPC: an authority need not be a root.
    X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
    if (is_address) {
      X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str());
    } else {
      X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), host.size());
      SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
    }
    ERR_clear_error();
  }

  Result Run(ProbeSocket* socket) {
    Result result;
    while (true) {
      ERR_clear_error();
      const int ended = SSL_do_handshake(ssl_.get());
      result.done = ended == 1;
      const bool sent = Flush(socket);
      if (ended == 1 || SSL_get_error(ssl_.get(), ended) != SSL_ERROR_WANT_READ) break;
      if (!sent || !Fill(socket)) break;
    }
    if (!result.done) result.alert = Alert();
    // With TLS 1.3 a client is done before the server has looked at its certificate.
    bool answered = false;
    if (result.done) result.alert = AwaitVerdict(socket, &answered);
    result.ended = !answered && socket->ended();
    result.wants_certificate = wants_certificate_;
    ERR_clear_error();
    result.certificate.reset(SSL_get1_peer_certificate(ssl_.get()));
    result.began = result.certificate != nullptr || result.alert >= 0;
    result.verified = SSL_get_verify_result(ssl_.get());
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &chosen, &size);
    result.chose_http2 = size == 2;
    return result;
  }

 private:
  bool Flush(ProbeSocket* socket) {
    char* data = nullptr;
    BIO* const out = SSL_get_wbio(ssl_.get());
    const long size = BIO_get_mem_data(out, &data);
    const bool sent = size <= 0 || socket->Send(absl::string_view(data, static_cast<size_t>(size)));
    BIO_reset(out);
    return sent;
  }

  bool Fill(ProbeSocket* socket) {
    const std::string bytes = socket->Receive();
    return !bytes.empty() &&
           BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }

  // Of the error that OpenSSL had last; -1: none came.
  int Alert() const {
    const unsigned long error = ERR_peek_last_error();
    const int reason = ERR_GET_REASON(error);
    return ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET &&
                   reason < SSL_AD_REASON_OFFSET + 256
               ? reason - SSL_AD_REASON_OFFSET
               : -1;
  }

  // The alert that comes in place of the settings that a server of HTTP/2 begins with.
  int AwaitVerdict(ProbeSocket* socket, bool* answered) {
    if (SSL_write(ssl_.get(), kPreface.data(), static_cast<int>(kPreface.size())) <= 0) return -1;
    Flush(socket);
    char byte = 0;
    while (true) {
      ERR_clear_error();
      const int read = SSL_read(ssl_.get(), &byte, 1);
      *answered = read > 0;
      if (*answered) return -1;
      if (SSL_get_error(ssl_.get(), read) != SSL_ERROR_WANT_READ) return Alert();
      if (!Fill(socket)) return -1;
    }
  }

  bool wants_certificate_ = false;
  const std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

Handshake::Result ShakeHands(const Server& server, const ClientFiles& files, absl::Duration limit) {
  const auto socket = ProbeSocket::Connect(server.addresses, limit);
  return socket == nullptr ? Handshake::Result() : Handshake(server.host, files).Run(socket.get());
}

absl::Status CheckTrust(const Server& server, const ClientFiles& files,
                        const Handshake::Result& result) {
  const X509* const certificate = result.certificate.get();
  const std::string whose =
      absl::StrCat("the certificate that ", server.name, " shows (", SubjectText(certificate),
                   ", signed by ", IssuerText(certificate), ")");
  switch (result.verified) {
    case X509_V_OK:
      return absl::OkStatus();
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return FieldError(
          "--server", absl::StrCat(whose, " is not for ", Quoted(server.host)),
          absl::StrCat("a name that it is for: ", absl::StrJoin(HostNamesOf(certificate), ", ")));
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return FieldError("--server",
                        absl::StrCat(whose, ": ", X509_verify_cert_error_string(result.verified)),
                        "a server whose certificate, with all that signed it, is valid now; is "
                        "this machine's clock right?");
    default:
      return FieldError("--ca",
                        absl::StrCat(whose, " is not trusted by ",
                                     files.ca.empty() ? "this machine's authorities" : files.ca,
                                     ": ", X509_verify_cert_error_string(result.verified)),
                        kAuthority);
  }
}

// Of the client's own certificate.
absl::Status CheckOwn(const Server& server, const ClientFiles& files,
                      const Handshake::Result& result) {
  if (!result.wants_certificate || (result.alert < 0 && !result.ended)) return absl::OkStatus();
  if (files.cert.empty()) {
    return FieldError("--cert",
                      absl::StrCat("missing: ", server.name, " wants a certificate of its clients"),
                      "--cert=FILE and --key=FILE, signed by one that the server's "
                      "--tls-client-ca has");
  }
  return FieldError(
      "--cert",
      absl::StrCat(
          server.name, " does not take the certificate in ", files.cert,
          result.alert < 0 ? "" : absl::StrCat(": ", SSL_alert_desc_string_long(result.alert))),
      "one that is valid and signed by one that the server's --tls-client-ca has");
}

absl::Status NoGrpc(const Server& server) {
  return FieldError("--server", absl::StrCat(server.name, " is the server's HTTP port, not gRPC's"),
                    kGrpcPort);
}

absl::Status CheckPlain(const Server& server, absl::Duration limit) {
  const Answer answer = AnswerInPlainText(server, limit);
  if (answer == Answer::kHttp1) return NoGrpc(server);
  if (answer == Answer::kHttp2) return absl::OkStatus();
  // Servers of TLS end such a connection with an alert, or without a word.
  if (answer != Answer::kTls && !ShakeHands(server, {}, limit).began) {
    return absl::OkStatus();
  }
  return FieldError("--ca", absl::StrCat("missing: ", server.name, " speaks TLS"), kAuthority);
}

absl::Status CheckTls(const Server& server, const ClientFiles& files, absl::Duration limit) {
  const Handshake::Result result = ShakeHands(server, files, limit);
  if (!result.began) {
    const Answer answer = AnswerInPlainText(server, limit);
    if (answer == Answer::kNothing || answer == Answer::kTls) return absl::OkStatus();
    return FieldError(files.ca.empty() ? "--cert" : "--ca",
                      absl::StrCat(server.name, " does not speak TLS"),
                      "none of --ca, --cert and --key; or the address of a server with TLS");
  }
  if (result.certificate != nullptr) {
    PLUMBLINE_RETURN_IF_ERROR(CheckTrust(server, files, result));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckOwn(server, files, result));
  if (result.done && result.alert < 0 && !result.ended && !result.chose_http2)
    return NoGrpc(server);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConnection(const std::string& server, const ClientFiles& files,
                             absl::Duration limit) {
  // The host as gRPC names a server that has no name.
  Server checked = {server, "localhost", FindServer(server, limit)};
  if (auto parsed = ParseHostAndPort(server, 1, "server", ""); parsed.ok()) {
    checked.host = std::move(parsed->host);
  }
  if (checked.addresses.is_unknown) {
    return FieldError("--server", absl::StrCat("nobody knows the name ", Quoted(checked.host)),
                      "a name that this machine can look up, or an address");
  }
  return files.ca.empty() && files.cert.empty() ? CheckPlain(checked, limit)
                                                : CheckTls(checked, files, limit);
}

}  // namespace plumbline
