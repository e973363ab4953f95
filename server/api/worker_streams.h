#ifndef PLUMBLINE_SERVER_API_WORKER_STREAMS_H_
#define PLUMBLINE_SERVER_API_WORKER_STREAMS_H_

#include "proto/plumbline/v1/worker_service.pb.h"
#include "server/api/api.h"

namespace grpc {
template <class Request>
class ServerReadReactor;
template <class Response>
class ServerWriteReactor;
}  // namespace grpc

namespace plumbline::server {

// What workers stream. All delete themselves when they are done; `api` must outlive them.
grpc::ServerReadReactor<v1::ReportEventsRequest>* NewReportEventsStream(
    const Api& api, v1::ReportEventsResponse* response);
grpc::ServerReadReactor<v1::PutArtifactRequest>* NewPutArtifactStream(const Api& api,
                                                                      v1::Artifact* response);

// UNIMPLEMENTED: this server has no step store.
grpc::ServerReadReactor<v1::PutStepRequest>* RefusePutStep(const Api& api);
grpc::ServerWriteReactor<v1::GetStepResponse>* RefuseGetStep(const Api& api);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_WORKER_STREAMS_H_
