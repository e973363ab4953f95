#ifndef PLUMBLINE_COMMON_DIAGNOSTIC_HANDLERS_H_
#define PLUMBLINE_COMMON_DIAGNOSTIC_HANDLERS_H_

#include <functional>

#include "absl/status/status.h"
#include "common/http_server.h"
#include "common/metrics.h"

namespace plumbline {

// Adds what an operator and a cluster ask of every daemon: GET /metrics in Prometheus' format,
// GET /healthz (200 as long as the process answers) and GET /readyz (200 where `ready` is OK, else
// 503 with its message). `metrics` must outlive the server; `ready` is called on several threads.
void AddDiagnosticHandlers(const Metrics* metrics, std::function<absl::Status()> ready,
                           HttpServer* server);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_DIAGNOSTIC_HANDLERS_H_
