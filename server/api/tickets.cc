#include "server/api/tickets.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

std::string Sign(absl::string_view key, absl::string_view artifact, int64_t expires_unix_seconds) {
  const std::string message = absl::StrCat(artifact, "\n", expires_unix_seconds);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest, &size);
  return absl::WebSafeBase64Escape(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace

std::string MakeTicket(absl::string_view key, absl::string_view artifact, absl::Time expires) {
  const int64_t seconds = absl::ToUnixSeconds(expires);
  return absl::StrCat(seconds, ".", Sign(key, artifact, seconds));
}

absl::Status CheckTicket(absl::string_view key, absl::string_view artifact,
                         absl::string_view ticket, absl::Time now) {
  const absl::Status denied =
      WithReason(absl::PermissionDeniedError("the ticket is for another artifact, or has expired"),
                 "PERMISSION_DENIED");
  const size_t dot = ticket.find('.');
  int64_t seconds = 0;
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(ticket.substr(0, dot), &seconds)) {
    return denied;
  }
  const std::string expected = Sign(key, artifact, seconds);
  const absl::string_view signature = ticket.substr(dot + 1);
  // In a time that does not tell how much of it was right.
  if (signature.size() != expected.size() ||
      CRYPTO_memcmp(signature.data(), expected.data(), expected.size()) != 0) {
    return denied;
  }
  return now < absl::FromUnixSeconds(seconds) ? absl::OkStatus() : denied;
}

}  // namespace plumbline::server
