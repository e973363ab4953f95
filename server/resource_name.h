#ifndef PLUMBLINE_SERVER_RESOURCE_NAME_H_
#define PLUMBLINE_SERVER_RESOURCE_NAME_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Resource names as in AIP-122. Errors are INVALID_ARGUMENT and name `field`.

namespace plumbline::server {

// The last part of "COLLECTION/{id}", e.g. of "jobs/abc" where `collection` is "jobs".
absl::StatusOr<std::string> ParseName(absl::string_view name, absl::string_view collection,
                                      absl::string_view field);

struct TaskName {
  std::string job_id;
  int32_t task = 0;
};

// "jobs/{job}/tasks/{task}".
absl::StatusOr<TaskName> ParseTaskName(absl::string_view name, absl::string_view field);

std::string JobName(absl::string_view job_id);
std::string TaskNameOf(absl::string_view job_name, int32_t task);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_RESOURCE_NAME_H_
