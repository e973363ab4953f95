#ifndef PLUMBLINE_SERVER_ACCESS_AUTHENTICATOR_H_
#define PLUMBLINE_SERVER_ACCESS_AUTHENTICATOR_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/access/access_file.h"

namespace plumbline::server {

// Who calls.
struct Principal {
  std::string name;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string credential;  // Of the token or certificate, for Recheck. No secret.
};

// Knows who is in the access file. Any thread may call.
class Authenticator {
 public:
  // INVALID_ARGUMENT naming "access-file" if the file cannot be read or lets nobody in.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Load(const std::string& path);

  // UNAUTHENTICATED, reason UNAUTHENTICATED, for one that is not in the file, has expired or was
  // revoked. Says nothing of what was given.
  absl::StatusOr<Principal> OfToken(absl::string_view token, absl::Time now) const;
  absl::StatusOr<Principal> OfCertificate(absl::string_view common_name, absl::Time now) const;

  // The same error if the token or certificate of `credential`, which was good, is no longer.
  absl::Status Recheck(const std::string& credential, absl::Time now) const;

  // Reads the file again if it has changed. A file that cannot be used changes nothing: its error.
  absl::Status Reload();

 private:
  struct Entries {
    std::map<std::string, AccessEntry> by_id;
    std::map<std::string, AccessEntry> by_certificate;
  };

  explicit Authenticator(std::string path) : path_(std::move(path)) {}
  std::shared_ptr<const Entries> entries() const;

  const std::string path_;
  mutable absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);  // That was read last.
  std::shared_ptr<const Entries> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_AUTHENTICATOR_H_
