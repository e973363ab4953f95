#ifndef PLUMBLINE_SERVER_HTTP_ARTIFACT_HANDLER_H_
#define PLUMBLINE_SERVER_HTTP_ARTIFACT_HANDLER_H_

#include "common/clock.h"
#include "common/http_server.h"
#include "server/store/artifact_files.h"
#include "server/store/store.h"

namespace plumbline::server {

// Adds GET /artifacts/{artifact}?ticket=..., with HTTP Range. All must outlive the server.
void AddArtifactHandler(Clock* clock, const Store* store, const ArtifactFiles* files,
                        HttpServer* server);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_ARTIFACT_HANDLER_H_
