#ifndef PLUMBLINE_SERVER_API_API_H_
#define PLUMBLINE_SERVER_API_API_H_

#include <atomic>

#include "common/clock.h"
#include "common/random_id.h"
#include "server/access/gatekeeper.h"
#include "server/blocking_pool.h"
#include "server/metrics/server_metrics.h"
#include "server/scheduler/dispatcher.h"
#include "server/scheduler/event_hub.h"
#include "server/store/artifact_files.h"
#include "server/store/backups.h"
#include "server/store/step_store.h"
#include "server/store/store.h"

namespace plumbline::server {

// What the services work with. None is owned; all outlive the gRPC server.
struct Api {
  Clock* clock = nullptr;
  IdSource* ids = nullptr;
  Gatekeeper* gatekeeper = nullptr;
  Store* store = nullptr;
  StepStore* steps = nullptr;
  Backups* backups = nullptr;
  ArtifactFiles* files = nullptr;
  Dispatcher* dispatcher = nullptr;
  EventHub* hub = nullptr;
  BlockingPool* pool = nullptr;
  ServerMetrics* metrics = nullptr;
  // Set before the server shuts down: streams that would wait end with UNAVAILABLE.
  const std::atomic<bool>* stopping = nullptr;
  // Whether clients may upload plug-ins, which workers then load.
  bool takes_plugin_uploads = false;
  PrincipalLimits limits;
};

// Limits of the API.
inline constexpr int64_t kMaxChunkBytes = 1 << 20;
// Beside a report of the largest size a message holds names and attempts, within gRPC's 4 MB.
inline constexpr int64_t kMaxReportBytes = (4 << 20) - (64 << 10);
inline constexpr int64_t kMaxPageBytes = 3 << 20;
// Of why somebody did something, for the audit log.
inline constexpr size_t kMaxReasonBytes = 1000;
inline constexpr int64_t kMaxFileBytes = int64_t{1} << 40;

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_API_H_
