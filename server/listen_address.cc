#include "server/listen_address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/host_and_port.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

constexpr absl::string_view kForm = "127.0.0.1:PORT, [::1]:PORT, localhost:PORT or unix:PATH";
// Of struct sockaddr_un.
constexpr size_t kMaxSocketPathBytes = 107;

}  // namespace

absl::Status CheckListenAddress(absl::string_view address, absl::string_view field,
                                bool is_protected) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    if (!path.empty() && path.size() <= kMaxSocketPathBytes) return absl::OkStatus();
    return FieldError(field, absl::StrCat(Quoted(address), " has no path, or too long a one"),
                      absl::StrCat("unix:PATH, PATH of at most ", kMaxSocketPathBytes, " bytes"));
  }
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return FieldError(field, absl::StrCat(Quoted(address), " is no address"), kForm);
  }
  if (is_protected || IsLoopbackAddress(address)) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat(Quoted(address),
                                 " can be reached from other machines, which needs TLS "
                                 "(--tls-cert, --tls-key) and authentication (--access-file)"),
                    absl::StrCat("without both, ", kForm));
}

}  // namespace plumbline::server
