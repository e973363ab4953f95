#include "server/access/authenticator.h"

#include <openssl/crypto.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/access/token.h"
#include "common/logging.h"
#include "common/private_file.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

constexpr size_t kMaxBytes = 16 << 20;

absl::Status Unauthenticated(absl::string_view why) {
  return WithReason(absl::UnauthenticatedError(why), "UNAUTHENTICATED");
}

// What credentials begin with: the id of a token follows, or the name in a certificate.
constexpr absl::string_view kTokenCredential = "token:";
constexpr absl::string_view kCertificateCredential = "certificate:";

absl::Status Valid(const AccessEntry& entry, absl::Time now) {
  if (entry.revoked <= now) return Unauthenticated("the token or certificate was revoked");
  if (entry.expires <= now) return Unauthenticated("the token or certificate has expired");
  return absl::OkStatus();
}

absl::StatusOr<Principal> Admitted(const AccessEntry& entry, absl::Time now) {
  PLUMBLINE_RETURN_IF_ERROR(Valid(entry, now));
  return Principal{entry.name, entry.role,
                   entry.certificate.empty()
                       ? absl::StrCat(kTokenCredential, entry.id)
                       : absl::StrCat(kCertificateCredential, entry.certificate)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Load(const std::string& path) {
  std::unique_ptr<Authenticator> authenticator(new Authenticator(path));
  const absl::Status status = authenticator->Reload();
  if (!status.ok()) return FieldError("access-file", status.message());
  return authenticator;
}

absl::Status Authenticator::Reload() {
  PLUMBLINE_ASSIGN_OR_RETURN(PrivateFile read, ReadPrivateFile(path_, kMaxBytes));
  {
    absl::MutexLock lock(&mutex_);
    if (entries_ != nullptr && read.text == text_) return absl::OkStatus();
  }
  PLUMBLINE_ASSIGN_OR_RETURN(AccessFile file, ParseAccessFile(read.text, path_));
  if (file.entries.empty()) {
    return FieldError(path_, "lets nobody in", "one or more entries: plumbline token create");
  }
  if (read.others_may_read) {
    Log(LogLevel::kWarning, "the access file can be read by everybody; chmod 600 it",
        {{"file", path_}});
  }
  auto entries = std::make_shared<Entries>();
  for (AccessEntry& entry : file.entries) {
    if (entry.certificate.empty()) {
      entries->by_id.emplace(entry.id, std::move(entry));
    } else {
      entries->by_certificate.emplace(entry.certificate, std::move(entry));
    }
  }
  absl::MutexLock lock(&mutex_);
  text_ = std::move(read.text);
  entries_ = std::move(entries);
  return absl::OkStatus();
}

std::shared_ptr<const Authenticator::Entries> Authenticator::entries() const {
  absl::MutexLock lock(&mutex_);
  return entries_;
}

absl::StatusOr<Principal> Authenticator::OfToken(absl::string_view token, absl::Time now) const {
  const absl::Status unknown = Unauthenticated("the token is not known");
  const std::optional<TokenParts> parts = ParseToken(token);
  if (!parts.has_value()) return unknown;
  const std::shared_ptr<const Entries> known = entries();
  const auto entry = known->by_id.find(std::string(parts->id));
  if (entry == known->by_id.end()) return unknown;
  const std::string hash = HashTokenSecret(entry->second.salt, parts->secret);
  // In a time that does not tell how much of it was right.
  if (CRYPTO_memcmp(hash.data(), entry->second.sha256.data(), hash.size()) != 0) return unknown;
  return Admitted(entry->second, now);
}

absl::StatusOr<Principal> Authenticator::OfCertificate(absl::string_view common_name,
                                                       absl::Time now) const {
  const std::shared_ptr<const Entries> known = entries();
  const auto entry = known->by_certificate.find(std::string(common_name));
  if (entry == known->by_certificate.end()) {
    return Unauthenticated("the call has no token, and its certificate is not known");
  }
  return Admitted(entry->second, now);
}

absl::Status Authenticator::Recheck(const std::string& credential, absl::Time now) const {
  const std::shared_ptr<const Entries> known = entries();
  absl::string_view key = credential;
  const bool is_token = absl::ConsumePrefix(&key, kTokenCredential);
  if (!is_token) absl::ConsumePrefix(&key, kCertificateCredential);
  const std::map<std::string, AccessEntry>& all = is_token ? known->by_id : known->by_certificate;
  const auto entry = all.find(std::string(key));
  if (entry == all.end()) return Unauthenticated("the token or certificate was taken away");
  return Valid(entry->second, now);
}

}  // namespace plumbline::server
