#include "server/resource_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

constexpr size_t kMaxIdBytes = 63;

// Ids that this coordinator makes, and worker ids.
bool IsId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
  });
}

absl::Status NotAName(absl::string_view name, absl::string_view field, absl::string_view form) {
  return FieldError(field, absl::StrCat(Quoted(name), " is no name of this kind"), form);
}

}  // namespace

absl::StatusOr<std::string> ParseName(absl::string_view name, absl::string_view collection,
                                      absl::string_view field) {
  absl::string_view id = name;
  if (!absl::ConsumePrefix(&id, collection) || !absl::ConsumePrefix(&id, "/") || !IsId(id)) {
    return NotAName(name, field, absl::StrCat(collection, "/ID, ID of 1 to 63 of [a-z0-9-]"));
  }
  return std::string(id);
}

absl::StatusOr<TaskName> ParseTaskName(absl::string_view name, absl::string_view field) {
  TaskName parsed;
  const size_t split = name.find("/tasks/");
  const absl::string_view number =
      split == absl::string_view::npos ? "" : name.substr(split + sizeof("/tasks/") - 1);
  const absl::StatusOr<std::string> job = ParseName(name.substr(0, split), "jobs", field);
  // One spelling for each number, since names are compared as text.
  if (!job.ok() || !absl::SimpleAtoi(number, &parsed.task) || parsed.task < 0 ||
      absl::StrCat(parsed.task) != number) {
    return NotAName(name, field, "jobs/JOB/tasks/NUMBER");
  }
  parsed.job_id = *job;
  return parsed;
}

std::string JobName(absl::string_view job_id) { return absl::StrCat("jobs/", job_id); }

std::string TaskNameOf(absl::string_view job_name, int32_t task) {
  return absl::StrCat(job_name, "/tasks/", task);
}

}  // namespace plumbline::server
