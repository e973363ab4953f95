#include "common/tls/certificates.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/status.h"

namespace plumbline {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// NIST SP 800-57, part 1, table 2: 112 bits of security, which OpenSSL's security level 2 asks for
// too. Above the upper bound OpenSSL verifies no signature.
constexpr int kLeastRsaBits = 2048;
constexpr int kMostRsaBits = 16384;
constexpr int kLeastSecurityBits = 112;
constexpr int kSecurityLevel = 2;
// What browsers, Go and OpenSSL all verify.
constexpr std::array<absl::string_view, 3> kCurves = {"prime256v1", "secp384r1", "secp521r1"};
constexpr absl::string_view kAcceptedKeys =
    "RSA of 2048 to 16384 bits, EC on P-256, P-384 or P-521, or Ed25519";
constexpr absl::string_view kValid = "one that is valid now; is this machine's clock right?";

std::unique_ptr<BIO, Free> BioOf(const std::string& text) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// No passphrase is asked for on a terminal, whatever a file says it needs.
int NoPassphrase(char*, int, int, void*) { return -1; }

// What is wrong with `key`, e.g. "an RSA key of 1024 bits"; "": nothing.
std::string WeakKey(const EVP_PKEY* key) {
  if (key == nullptr) return "a key that is not known";
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits >= kLeastRsaBits && bits <= kMostRsaBits) return "";
      return absl::StrCat("an RSA key of ", bits, " bits");
    }
    case EVP_PKEY_EC: {
      char curve[80] = "";
      size_t size = 0;
      if (EVP_PKEY_get_group_name(key, curve, sizeof(curve), &size) != 1) {
        return "an EC key on a curve without a name";
      }
      if (std::find(kCurves.begin(), kCurves.end(), absl::string_view(curve)) != kCurves.end()) {
        return "";
      }
      return absl::StrCat("an EC key on ", Printable(curve));
    }
    case EVP_PKEY_ED25519:
      return "";
    default: {
      const char* const name = EVP_PKEY_get0_type_name(key);
      return absl::StrCat("a key of type ", name == nullptr ? "unknown" : Printable(name));
    }
  }
}

absl::Status CheckStrength(const X509* certificate, const PemFile& file) {
  const std::string whose =
      absl::StrCat("the certificate of ", SubjectText(certificate), " in ", file.path);
  if (const std::string weak = WeakKey(X509_get0_pubkey(certificate)); !weak.empty()) {
    return FieldError(file.field, absl::StrCat(whose, " has ", weak), kAcceptedKeys);
  }
  // Nobody verifies what an authority says of itself.
  auto* const unconst = const_cast<X509*>(certificate);
  if ((X509_get_extension_flags(unconst) & EXFLAG_SS) != 0) return absl::OkStatus();
  int digest = NID_undef;
  int security_bits = 0;
  if (X509_get_signature_info(unconst, &digest, nullptr, &security_bits, nullptr) == 1 &&
      security_bits >= kLeastSecurityBits) {
    return absl::OkStatus();
  }
  return FieldError(file.field,
                    absl::StrCat(whose, " is signed with ",
                                 digest == NID_undef ? "an unknown digest" : OBJ_nid2sn(digest)),
                    "SHA-256, SHA-384 or SHA-512");
}

// What the checks here know nothing of, as OpenSSL says it; "": it takes both.
std::string Refusal(const std::vector<Certificate>& chain, EVP_PKEY* key) {
  const std::unique_ptr<SSL_CTX, Free> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return "out of memory";
  SSL_CTX_set_security_level(context.get(),
                             std::max(kSecurityLevel, SSL_CTX_get_security_level(context.get())));
  bool good = SSL_CTX_use_certificate(context.get(), chain[0].get()) == 1 &&
              SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  for (size_t i = 1; good && i < chain.size(); ++i) {
    good = SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) == 1;
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  const std::string text = reason == nullptr ? "OpenSSL does not say why" : reason;
  ERR_clear_error();
  return good ? "" : text;
}

std::string NameText(const X509_NAME* name) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  const std::string text = Printable(absl::string_view(data, static_cast<size_t>(size)));
  return text.empty() ? "nobody" : text;
}

}  // namespace

std::vector<Certificate> ParseCertificates(const std::string& pem) {
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

absl::Status CheckIdentity(const PemFile& certificate, const PemFile& key, absl::Time now) {
  const std::vector<Certificate> chain = ParseCertificates(certificate.text);
  if (chain.empty()) {
    return FieldError(certificate.field, absl::StrCat(certificate.path, " holds no certificate"),
                      "a PEM file");
  }
  const auto key_bio = BioOf(key.text);
  const std::unique_ptr<EVP_PKEY, Free> private_key(
      PEM_read_bio_PrivateKey(key_bio.get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  if (private_key == nullptr) {
    return FieldError(key.field, absl::StrCat(key.path, " holds no private key"),
                      "a PEM file without a passphrase");
  }
  if (X509_check_private_key(chain[0].get(), private_key.get()) != 1) {
    ERR_clear_error();
    return FieldError(
        key.field,
        absl::StrCat(key.path, " is not the key of the certificate in ", certificate.path),
        "the key of the file's first certificate");
  }
  for (const Certificate& each : chain) {
    PLUMBLINE_RETURN_IF_ERROR(CheckStrength(each.get(), certificate));
  }
  time_t unix_now = absl::ToTimeT(now);
  if (X509_cmp_time(X509_get0_notAfter(chain[0].get()), &unix_now) <= 0) {
    return FieldError(certificate.field,
                      absl::StrCat("the certificate in ", certificate.path, " has expired"),
                      kValid);
  }
  if (X509_cmp_time(X509_get0_notBefore(chain[0].get()), &unix_now) > 0) {
    return FieldError(certificate.field,
                      absl::StrCat("the certificate in ", certificate.path, " is not valid yet"),
                      kValid);
  }
  if (const std::string refusal = Refusal(chain, private_key.get()); !refusal.empty()) {
    return FieldError(certificate.field,
                      absl::StrCat(certificate.path, " cannot be used for TLS: ", refusal));
  }
  return absl::OkStatus();
}

absl::Status CheckAuthorities(const PemFile& authorities) {
  const std::vector<Certificate> certificates = ParseCertificates(authorities.text);
  if (certificates.empty()) {
    return FieldError(authorities.field, absl::StrCat(authorities.path, " holds no certificate"),
                      "a PEM file");
  }
  for (const Certificate& each : certificates) {
    PLUMBLINE_RETURN_IF_ERROR(CheckStrength(each.get(), authorities));
  }
  return absl::OkStatus();
}

std::optional<std::string> CommonNameOf(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return std::nullopt;
  unsigned char* text = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) {
    ERR_clear_error();
    return std::nullopt;
  }
  std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

std::vector<std::string> HostNamesOf(const X509* certificate) {
  std::vector<std::string> names;
  auto* const general = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(general); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(general, i);
    int type = 0;
    const auto* const value = static_cast<ASN1_STRING*>(GENERAL_NAME_get0_value(name, &type));
    if (type != GEN_DNS && type != GEN_IPADD) continue;
    const auto* const data = ASN1_STRING_get0_data(value);
    const int size = ASN1_STRING_length(value);
    char address[INET6_ADDRSTRLEN] = "";
    if (type == GEN_DNS) {
      names.push_back(Printable(
          absl::string_view(reinterpret_cast<const char*>(data), static_cast<size_t>(size))));
    } else if ((size == 4 && inet_ntop(AF_INET, data, address, sizeof(address)) != nullptr) ||
               (size == 16 && inet_ntop(AF_INET6, data, address, sizeof(address)) != nullptr)) {
      names.emplace_back(address);
    }
  }
  GENERAL_NAMES_free(general);
  if (names.empty()) names.emplace_back("none");
  return names;
}

std::string SubjectText(const X509* certificate) {
  return NameText(X509_get_subject_name(certificate));
}

std::string IssuerText(const X509* certificate) {
  return NameText(X509_get_issuer_name(certificate));
}

}  // namespace plumbline
