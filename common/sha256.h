#ifndef PLUMBLINE_COMMON_SHA256_H_
#define PLUMBLINE_COMMON_SHA256_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// OpenSSL's EVP_MD_CTX, named here so that its headers stay out of this one.
struct evp_md_ctx_st;

namespace plumbline {

using Sha256Digest = std::array<uint8_t, 32>;

// SHA-256 (FIPS 180-4) of bytes that arrive in pieces. One thread at a time.
class Sha256 {
 public:
  Sha256();

  void Update(absl::Span<const uint8_t> bytes);
  void Update(absl::string_view bytes);

  // The digest of everything since construction or the last Finish; starts anew.
  Sha256Digest Finish();
  std::string FinishHex();

 private:
  struct Deleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Deleter> context_;
};

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(absl::Span<const uint8_t> bytes);
std::string Sha256Hex(absl::string_view bytes);
std::string HexDigest(const Sha256Digest& digest);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_SHA256_H_
