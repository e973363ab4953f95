#ifndef PLUMBLINE_COMMON_EVIDENCE_SIGNATURE_H_
#define PLUMBLINE_COMMON_EVIDENCE_SIGNATURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Ed25519 (RFC 8032) over the whole message, keys as PEM, as `openssl genpkey -algorithm ed25519`
// writes them.

namespace plumbline {

inline constexpr size_t kSignatureBytes = 64;

// The signature, kSignatureBytes raw. INVALID_ARGUMENT for what is no Ed25519 private key; the
// message never quotes the key.
absl::StatusOr<std::string> SignEd25519(absl::string_view private_key_pem,
                                        absl::string_view message);

// The public half of a private key, as PEM. INVALID_ARGUMENT likewise.
absl::StatusOr<std::string> PublicKeyOf(absl::string_view private_key_pem);

// Whether `signature` is that of `message`. INVALID_ARGUMENT for what is no Ed25519 public key.
absl::StatusOr<bool> VerifyEd25519(absl::string_view public_key_pem, absl::string_view message,
                                   absl::string_view signature);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_SIGNATURE_H_
