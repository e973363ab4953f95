// Short texts of requests that the coordinator takes apart: names, tickets, addresses, origins.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/chosen_name.h"
#include "common/host_and_port.h"
#include "common/http_message.h"
#include "common/utf8.h"
#include "server/api/file_name.h"
#include "server/api/tickets.h"
#include "server/http/origin_filter.h"
#include "server/listen_address.h"
#include "server/resource_name.h"
#include "server/store/run_name.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;          // NOLINT
  using namespace plumbline::server;  // NOLINT
  const absl::string_view text = fuzz::Input(data, size).Rest();
  for (const char* const collection : {"jobs", "workers", "uploads", "artifacts"}) {
    const absl::StatusOr<std::string> id = ParseName(text, collection, "name");
    if (id.ok()) FUZZ_REQUIRE(absl::StrCat(collection, "/", *id) == text);
  }
  const absl::StatusOr<TaskName> task = ParseTaskName(text, "name");
  // One name for one task.
  if (task.ok()) FUZZ_REQUIRE(TaskNameOf(JobName(task->job_id), task->task) == text);
  for (const bool prefix : {false, true}) {
    const absl::StatusOr<std::string> run = ParseRunName(text, "name", prefix);
    if (run.ok()) FUZZ_REQUIRE(absl::StrCat("runs/", *run) == text && run->size() <= 64);
  }
  if (CheckFileName(text, "file_name").ok()) {
    FUZZ_REQUIRE(!absl::StrContains(text, "/") && IsPlainText(text));
  }
  if (IsPlainText(text)) {
    FUZZ_REQUIRE(IsUtf8(std::string(text)) && !absl::StrContains(text, "\xe2\x80\xae") &&
                 !absl::StrContains(text, "\n") &&
                 !absl::StrContains(text, absl::string_view("\0", 1)));
  }
  if (CheckMediaType(text, "media_type").ok()) FUZZ_REQUIRE(IsFieldValue(text));
  // No text is a ticket under a key that it does not know, and one for one name opens that alone.
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  FUZZ_REQUIRE(!CheckTicket("key", "artifacts/a", text, now).ok());
  const std::string ticket = MakeTicket("key", text, now + absl::Seconds(1));
  FUZZ_REQUIRE(CheckTicket("key", text, ticket, now).ok());
  FUZZ_REQUIRE(!CheckTicket("key", text, ticket, now + absl::Seconds(1)).ok());
  FUZZ_REQUIRE(!CheckTicket("key", absl::StrCat(text, "a"), ticket, now).ok());
  FUZZ_REQUIRE(!CheckTicket("other", text, ticket, now).ok());
  if (CheckListenAddress(text, "listen", /*is_protected=*/false).ok()) {
    FUZZ_REQUIRE(IsLoopbackAddress(text));
  }
  CheckListenAddress(text, "listen", /*is_protected=*/true).IgnoreError();
  CheckOrigins({std::string(text)}, "cors-origin").IgnoreError();
  HttpRequest request;
  request.headers["host"] = std::string(text);
  request.headers["origin"] = std::string(text);
  MakeOriginFilter({"https://a.test"}, true)(request);
  return 0;
}
