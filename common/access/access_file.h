#ifndef PLUMBLINE_COMMON_ACCESS_ACCESS_FILE_H_
#define PLUMBLINE_COMMON_ACCESS_ACCESS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/plumbline/v1/access.pb.h"

namespace plumbline {

// Somebody who may call a server: the bearer of a token or of a client certificate.
struct AccessEntry {
  std::string name;  // The principal; 1 to 63 of [A-Za-z0-9._@-], unique in the file.
  v1::Role role = v1::ROLE_UNSPECIFIED;
  // A token's, without its secret...
  std::string id;
  std::string salt;
  std::string sha256;
  // ... or a certificate's common name, as CheckChosenName wants it.
  std::string certificate;
  absl::Time created;
  absl::Time expires = absl::InfiniteFuture();
  absl::Time revoked = absl::InfiniteFuture();
};

// The file of `plumbline-server --access-file`, JSON, which `plumbline token` writes.
struct AccessFile {
  std::vector<AccessEntry> entries;
};

// INVALID_ARGUMENT saying what is wrong where.
absl::StatusOr<AccessFile> ParseAccessFile(absl::string_view text, absl::string_view where);
std::string FormatAccessFile(const AccessFile& file);

// A file that is not there is an empty one with `may_be_missing`.
absl::StatusOr<AccessFile> LoadAccessFile(const std::string& path, bool may_be_missing = false);
// Replaces the file at once, readable by its owner alone.
absl::Status SaveAccessFile(const std::string& path, const AccessFile& file);

// Adds an entry; the token to give to its bearer, or "" for a certificate. INVALID_ARGUMENT for a
// name that is none, or taken by an entry that is not revoked (a revoked one of the name goes).
absl::StatusOr<std::string> AddAccess(AccessEntry entry, AccessFile* file);
// NOT_FOUND if there is no entry of that name that is not revoked.
absl::Status RevokeAccess(absl::string_view name, absl::Time now, AccessFile* file);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ACCESS_ACCESS_FILE_H_
