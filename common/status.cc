#include "common/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"

namespace plumbline {
namespace {

constexpr char kViolationsUrl[] = "plumbline/field_violations";
constexpr char kPreconditionsUrl[] = "plumbline/preconditions";
constexpr char kReasonUrl[] = "plumbline/reason";
constexpr char kNeededMemoryUrl[] = "plumbline/needed_memory_bytes";
constexpr size_t kQuotedBytes = 100;
constexpr absl::string_view kAccepted = "; accepted: ";

// Payloads are sequences of strings, each written as its decimal length, ':' and its bytes.
void AppendString(absl::string_view value, std::string* out) {
  absl::StrAppend(out, value.size(), ":", value);
}

// Takes one string from the front of `in`; false at the end or where the bytes are none of ours.
bool ConsumeString(absl::string_view* in, std::string* value) {
  const size_t colon = in->find(':');
  size_t size = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(in->substr(0, colon), &size) ||
      size > in->size() - colon - 1) {
    return false;
  }
  *value = std::string(in->substr(colon + 1, size));
  in->remove_prefix(colon + 1 + size);
  return true;
}

}  // namespace

absl::Status FieldError(absl::string_view field, absl::string_view description,
                        absl::string_view accepted) {
  std::string full(description);
  // What the description quotes may have said it already, and knew better.
  if (!accepted.empty() && !absl::StrContains(description, kAccepted)) {
    absl::StrAppend(&full, kAccepted, accepted);
  }
  return FieldErrors({{std::string(field), full}});
}

absl::Status FieldErrors(const std::vector<FieldViolation>& violations) {
  if (violations.empty()) return absl::OkStatus();
  const std::string message =
      absl::StrJoin(violations, "\n", [](std::string* out, const FieldViolation& violation) {
        absl::StrAppend(out, violation.field, ": ", violation.description);
      });
  return WithFieldViolations(absl::InvalidArgumentError(message), violations);
}

absl::Status WithFieldViolations(absl::Status status,
                                 const std::vector<FieldViolation>& violations) {
  std::string payload;
  for (const FieldViolation& violation : violations) {
    AppendString(violation.field, &payload);
    AppendString(violation.description, &payload);
  }
  status.SetPayload(kViolationsUrl, absl::Cord(payload));
  return status;
}

std::vector<FieldViolation> GetFieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const absl::optional<absl::Cord> payload = status.GetPayload(kViolationsUrl);
  if (!payload.has_value()) return violations;
  const std::string bytes(*payload);
  absl::string_view rest = bytes;
  FieldViolation violation;
  while (ConsumeString(&rest, &violation.field) && ConsumeString(&rest, &violation.description)) {
    violations.push_back(violation);
  }
  return violations;
}

absl::Status WithPreconditions(absl::Status status,
                               const std::vector<Precondition>& preconditions) {
  std::string payload;
  for (const Precondition& precondition : preconditions) {
    AppendString(precondition.type, &payload);
    AppendString(precondition.subject, &payload);
    AppendString(precondition.description, &payload);
  }
  status.SetPayload(kPreconditionsUrl, absl::Cord(payload));
  return status;
}

std::vector<Precondition> GetPreconditions(const absl::Status& status) {
  std::vector<Precondition> preconditions;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPreconditionsUrl);
  if (!payload.has_value()) return preconditions;
  const std::string bytes(*payload);
  absl::string_view rest = bytes;
  Precondition precondition;
  while (ConsumeString(&rest, &precondition.type) && ConsumeString(&rest, &precondition.subject) &&
         ConsumeString(&rest, &precondition.description)) {
    preconditions.push_back(precondition);
  }
  return preconditions;
}

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

std::string GetReason(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kReasonUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::Status WithNeededMemory(absl::Status status, int64_t bytes) {
  status.SetPayload(kNeededMemoryUrl, absl::Cord(absl::StrCat(bytes)));
  return status;
}

int64_t GetNeededMemory(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kNeededMemoryUrl);
  int64_t bytes = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &bytes)) return 0;
  return bytes;
}

absl::Status AnnotateStatus(const absl::Status& status, absl::string_view where) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(where, ": ", status.message()));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

std::string Quoted(absl::string_view untrusted) {
  const bool cut = untrusted.size() > kQuotedBytes;
  return absl::StrCat("\"", absl::CHexEscape(untrusted.substr(0, kQuotedBytes)),
                      cut ? "...\"" : "\"");
}

}  // namespace plumbline
