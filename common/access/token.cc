#include "common/access/token.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline {
namespace {

constexpr char kPrefix[] = "plumbline_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kIdBytes = 5;
constexpr size_t kSaltBytes = 16;

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  // Fewer than 256 bytes come whole or not at all; without them there is no security.
  if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) std::abort();
  return bytes;
}

}  // namespace

std::optional<TokenParts> ParseToken(absl::string_view token) {
  if (!absl::ConsumePrefix(&token, kPrefix)) return std::nullopt;
  const size_t end = token.find('_');
  if (end == absl::string_view::npos) return std::nullopt;
  const TokenParts parts = {token.substr(0, end), token.substr(end + 1)};
  if (parts.id.empty() || parts.secret.empty()) return std::nullopt;
  return parts;
}

std::string MakeToken(absl::string_view id, absl::string_view secret) {
  return absl::StrCat(kPrefix, id, "_", secret);
}

std::string NewTokenSecret() { return absl::WebSafeBase64Escape(RandomBytes(kSecretBytes)); }
std::string NewTokenId() { return absl::BytesToHexString(RandomBytes(kIdBytes)); }
std::string NewTokenSalt() { return absl::BytesToHexString(RandomBytes(kSaltBytes)); }

std::string HashTokenSecret(absl::string_view salt, absl::string_view secret) {
  return Sha256Hex(absl::StrCat(salt, "\n", secret));
}

std::string RoleName(v1::Role role) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Role_Name(role), "ROLE_"));
}

absl::StatusOr<v1::Role> ParseRole(absl::string_view name, absl::string_view field) {
  for (const v1::Role role :
       {v1::ROLE_VIEWER, v1::ROLE_SUBMITTER, v1::ROLE_WORKER, v1::ROLE_ADMIN}) {
    if (name == RoleName(role)) return role;
  }
  return FieldError(field, absl::StrCat(Quoted(name), " is no role"),
                    "viewer, submitter, worker, admin");
}

}  // namespace plumbline
