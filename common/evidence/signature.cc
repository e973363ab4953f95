#include "common/evidence/signature.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdint>
#include <memory>

#include "common/status.h"

namespace plumbline {
namespace {

struct Deleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter>;
using Context = std::unique_ptr<EVP_MD_CTX, Deleter>;
using Bio = std::unique_ptr<BIO, Deleter>;

const uint8_t* Bytes(absl::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// A key with a passphrase is not asked for one.
int NoPassphrase(char*, int, int, void*) { return 0; }

using ReadKey = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

absl::StatusOr<Key> Read(absl::string_view pem, ReadKey read, absl::string_view what) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Key key(bio == nullptr ? nullptr : read(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr || EVP_PKEY_base_id(key.get()) != EVP_PKEY_ED25519) {
    return FieldError(what, "is no Ed25519 key in PEM",
                      "as `openssl genpkey -algorithm ed25519` writes it, without a passphrase");
  }
  return key;
}

absl::StatusOr<Key> ReadPrivate(absl::string_view pem) {
  return Read(pem, PEM_read_bio_PrivateKey, "signing key");
}

}  // namespace

absl::StatusOr<std::string> SignEd25519(absl::string_view private_key_pem,
                                        absl::string_view message) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Key key, ReadPrivate(private_key_pem));
  const Context context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<uint8_t*>(signature.data()), &size,
                     Bytes(message), message.size()) != 1 ||
      size != signature.size()) {
    return absl::InternalError("the bundle could not be signed");
  }
  return signature;
}

absl::StatusOr<std::string> PublicKeyOf(absl::string_view private_key_pem) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Key key, ReadPrivate(private_key_pem));
  const Bio bio(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (bio == nullptr || PEM_write_bio_PUBKEY(bio.get(), key.get()) != 1) {
    return absl::InternalError("the public key could not be written");
  }
  const int64_t size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::StatusOr<bool> VerifyEd25519(absl::string_view public_key_pem, absl::string_view message,
                                   absl::string_view signature) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Key key,
                             Read(public_key_pem, PEM_read_bio_PUBKEY, "public key"));
  const Context context(EVP_MD_CTX_new());
  if (context == nullptr ||
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) {
    return absl::InternalError("the signature could not be checked");
  }
  const bool valid = EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                                      Bytes(message), message.size()) == 1;
  ERR_clear_error();
  return valid;
}

}  // namespace plumbline
