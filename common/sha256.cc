#include "common/sha256.h"

#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace plumbline {
namespace {

// OpenSSL fails here only without memory or without its own SHA-256: no input can cause it.
void Require(int result) {
  if (result != 1) {
    std::fputs("OpenSSL cannot compute SHA-256\n", stderr);
    std::abort();
  }
}

}  // namespace

void Sha256::Deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  Require(context_ != nullptr ? 1 : 0);
  Require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::Update(absl::Span<const uint8_t> bytes) {
  Require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

void Sha256::Update(absl::string_view bytes) {
  Require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  Require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
  Require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  return digest;
}

std::string Sha256::FinishHex() { return HexDigest(Finish()); }

std::string Sha256Hex(absl::Span<const uint8_t> bytes) {
  Sha256 sha256;
  sha256.Update(bytes);
  return sha256.FinishHex();
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 sha256;
  sha256.Update(bytes);
  return sha256.FinishHex();
}

std::string HexDigest(const Sha256Digest& digest) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

}  // namespace plumbline
