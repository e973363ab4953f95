#include "common/diagnostic_handlers.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace plumbline {

void AddDiagnosticHandlers(const Metrics* metrics, std::function<absl::Status()> ready,
                           HttpServer* server) {
  server->Handle("GET", "/metrics", [metrics](const HttpRequest&) {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics->Serialize();
    return response;
  });
  server->Handle("GET", "/healthz", [](const HttpRequest&) {
    HttpResponse response;
    response.body = "ok\n";
    return response;
  });
  server->Handle("GET", "/readyz", [ready = std::move(ready)](const HttpRequest&) {
    HttpResponse response;
    const absl::Status status = ready();
    response.status = status.ok() ? 200 : 503;
    response.body = status.ok() ? "ok\n" : absl::StrCat("not ready: ", status.message(), "\n");
    return response;
  });
}

}  // namespace plumbline
