#ifndef PLUMBLINE_COMMON_ACCESS_TOKEN_H_
#define PLUMBLINE_COMMON_ACCESS_TOKEN_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/access.pb.h"

namespace plumbline {

// A token is "plumbline_ID_SECRET". The ID names it, in lists too; the secret is 32 random bytes in
// base64url, shown once and kept nowhere but as a salted hash.
struct TokenParts {
  absl::string_view id;
  absl::string_view secret;
};

// Nothing for what has another form.
std::optional<TokenParts> ParseToken(absl::string_view token);
std::string MakeToken(absl::string_view id, absl::string_view secret);

// From the kernel's generator.
std::string NewTokenSecret();
std::string NewTokenId();
std::string NewTokenSalt();  // Hex.

// Hex of SHA-256(salt, secret). A secret of 256 random bits needs no slow hash: nobody can try
// them.
std::string HashTokenSecret(absl::string_view salt, absl::string_view secret);

// "viewer", "submitter", "worker", "admin".
std::string RoleName(v1::Role role);
// INVALID_ARGUMENT naming `field` and the roles.
absl::StatusOr<v1::Role> ParseRole(absl::string_view name, absl::string_view field);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ACCESS_TOKEN_H_
