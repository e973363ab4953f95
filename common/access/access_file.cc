#include "common/access/access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/access/token.h"
#include "common/chosen_name.h"
#include "common/files.h"
#include "common/json.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace plumbline {
namespace {

constexpr size_t kMaxBytes = 16 << 20;
constexpr size_t kMaxNameBytes = 63;
// X.509 has 64 characters, of four bytes at most.
constexpr size_t kMaxCertificateBytes = 256;

bool IsHex(absl::string_view text, size_t size) {
  return text.size() == size && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckName(absl::string_view name, absl::string_view field) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '@' ||
           c == '-';
  });
  if (plain && !name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return FieldError(field, absl::StrCat(Quoted(name), " is no name"),
                    "1 to 63 letters, digits and . _ @ -");
}

absl::StatusOr<absl::Time> GetTime(const nlohmann::json& object, absl::string_view where,
                                   absl::string_view field) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, GetString(object, where, field));
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return FieldError(absl::StrCat(where, ": ", field), absl::StrCat(Quoted(text), " is no time"),
                      "RFC 3339");
  }
  return time;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

absl::StatusOr<AccessEntry> ParseEntry(const nlohmann::json& object, absl::string_view where) {
  if (!object.is_object()) return FieldError(where, "is no object");
  static const auto* const kKnown = new std::set<std::string>{
      "name", "role", "id", "salt", "sha256", "certificate", "created", "expires", "revoked"};
  for (const auto& [key, value] : object.items()) {
    if (kKnown->count(key) == 0) {
      return FieldError(absl::StrCat(where, ": ", Quoted(key)), "is not known");
    }
  }
  AccessEntry entry;
  PLUMBLINE_ASSIGN_OR_RETURN(entry.name, GetString(object, where, "name"));
  PLUMBLINE_RETURN_IF_ERROR(CheckName(entry.name, absl::StrCat(where, ": name")));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string role, GetString(object, where, "role"));
  PLUMBLINE_ASSIGN_OR_RETURN(entry.role, ParseRole(role, absl::StrCat(where, ": role")));
  PLUMBLINE_ASSIGN_OR_RETURN(entry.created, GetTime(object, where, "created"));
  if (object.contains("expires")) {
    PLUMBLINE_ASSIGN_OR_RETURN(entry.expires, GetTime(object, where, "expires"));
  }
  if (object.contains("revoked")) {
    PLUMBLINE_ASSIGN_OR_RETURN(entry.revoked, GetTime(object, where, "revoked"));
  }
  if (object.contains("certificate")) {
    PLUMBLINE_ASSIGN_OR_RETURN(entry.certificate, GetString(object, where, "certificate"));
    if (object.contains("id") || object.contains("sha256")) {
      return FieldError(absl::StrCat(where, ": certificate"), "is beside a token's hash",
                        "a common name, or id, salt and sha256");
    }
    PLUMBLINE_RETURN_IF_ERROR(CheckChosenName(
        entry.certificate, absl::StrCat(where, ": certificate"), kMaxCertificateBytes));
    return entry;
  }
  PLUMBLINE_ASSIGN_OR_RETURN(entry.id, GetString(object, where, "id"));
  PLUMBLINE_ASSIGN_OR_RETURN(entry.salt, GetString(object, where, "salt"));
  PLUMBLINE_ASSIGN_OR_RETURN(entry.sha256, GetString(object, where, "sha256"));
  if (!IsHex(entry.id, 10)) return FieldError(absl::StrCat(where, ": id"), "is no token's ID");
  if (!IsHex(entry.salt, 32)) return FieldError(absl::StrCat(where, ": salt"), "is no salt");
  if (!IsHex(entry.sha256, 64)) return FieldError(absl::StrCat(where, ": sha256"), "is no hash");
  return entry;
}

}  // namespace

absl::StatusOr<AccessFile> ParseAccessFile(absl::string_view text, absl::string_view where) {
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
  if (!json.is_object() || json.size() != 1 || !json.contains("access") ||
      !json["access"].is_array()) {
    return FieldError(where, "is no access file", "what `plumbline token create` writes");
  }
  AccessFile file;
  std::set<std::string> names;
  std::set<std::string> keys;
  for (const nlohmann::json& object : json["access"]) {
    const std::string place = absl::StrCat(where, ": access[", file.entries.size(), "]");
    PLUMBLINE_ASSIGN_OR_RETURN(AccessEntry entry, ParseEntry(object, place));
    if (!names.insert(entry.name).second) {
      return FieldError(absl::StrCat(place, ": name"),
                        absl::StrCat(Quoted(entry.name), " is there twice"));
    }
    if (!keys.insert(absl::StrCat(entry.id, "/", entry.certificate)).second) {
      return FieldError(place, "has the ID or the certificate of another entry");
    }
    file.entries.push_back(std::move(entry));
  }
  return file;
}

std::string FormatAccessFile(const AccessFile& file) {
  nlohmann::json entries = nlohmann::json::array();
  for (const AccessEntry& entry : file.entries) {
    nlohmann::json object = {
        {"name", entry.name}, {"role", RoleName(entry.role)}, {"created", TimeText(entry.created)}};
    if (entry.certificate.empty()) {
      object["id"] = entry.id;
      object["salt"] = entry.salt;
      object["sha256"] = entry.sha256;
    } else {
      object["certificate"] = entry.certificate;
    }
    if (entry.expires != absl::InfiniteFuture()) object["expires"] = TimeText(entry.expires);
    if (entry.revoked != absl::InfiniteFuture()) object["revoked"] = TimeText(entry.revoked);
    entries.push_back(std::move(object));
  }
  const nlohmann::json json = {{"access", std::move(entries)}};
  return absl::StrCat(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

absl::StatusOr<AccessFile> LoadAccessFile(const std::string& path, bool may_be_missing) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status()) && may_be_missing) return AccessFile();
  PLUMBLINE_RETURN_IF_ERROR(text.status());
  return ParseAccessFile(*text, path);
}

absl::Status SaveAccessFile(const std::string& path, const AccessFile& file) {
  // The mode stays with the name that is renamed over it only if it is set before.
  const mode_t old = umask(0077);
  const absl::Status status = WriteFileAtomically(path, FormatAccessFile(file));
  umask(old);
  return status;
}

absl::StatusOr<std::string> AddAccess(AccessEntry entry, AccessFile* file) {
  PLUMBLINE_RETURN_IF_ERROR(CheckName(entry.name, "name"));
  if (!entry.certificate.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(
        CheckChosenName(entry.certificate, "certificate", kMaxCertificateBytes));
  }
  const auto clashes = [&entry](const AccessEntry& other) {
    return other.name == entry.name ||
           (!entry.certificate.empty() && other.certificate == entry.certificate);
  };
  for (const AccessEntry& other : file->entries) {
    if (clashes(other) && other.revoked == absl::InfiniteFuture()) {
      return FieldError(other.name == entry.name ? "name" : "certificate",
                        absl::StrCat(Quoted(other.name), " has it already; revoke it first"));
    }
  }
  file->entries.erase(std::remove_if(file->entries.begin(), file->entries.end(), clashes),
                      file->entries.end());
  std::string token;
  if (entry.certificate.empty()) {
    const std::string secret = NewTokenSecret();
    entry.id = NewTokenId();
    entry.salt = NewTokenSalt();
    entry.sha256 = HashTokenSecret(entry.salt, secret);
    token = MakeToken(entry.id, secret);
  }
  file->entries.push_back(std::move(entry));
  return token;
}

absl::Status RevokeAccess(absl::string_view name, absl::Time now, AccessFile* file) {
  for (AccessEntry& entry : file->entries) {
    if (entry.name != name || entry.revoked != absl::InfiniteFuture()) continue;
    entry.revoked = now;
    return absl::OkStatus();
  }
  return WithReason(absl::NotFoundError(absl::StrCat("nobody has the name ", Quoted(name))),
                    "NOT_FOUND");
}

}  // namespace plumbline
