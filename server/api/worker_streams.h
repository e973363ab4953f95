#ifndef PLUMBLINE_SERVER_API_WORKER_STREAMS_H_
#define PLUMBLINE_SERVER_API_WORKER_STREAMS_H_

#include "proto/plumbline/v1/worker_service.pb.h"
#include "server/api/api.h"
#include "server/caller.h"

namespace grpc {
template <class Request>
class ServerReadReactor;
template <class Response>
class ServerWriteReactor;
}  // namespace grpc

namespace plumbline::server {

// What workers stream. All delete themselves when they are done; `api` must outlive them.
grpc::ServerReadReactor<v1::ReportEventsRequest>* NewReportEventsStream(
    const Api& api, const Caller& caller, v1::ReportEventsResponse* response);
grpc::ServerReadReactor<v1::PutArtifactRequest>* NewPutArtifactStream(const Api& api,
                                                                      const Caller& caller,
                                                                      v1::Artifact* response);

grpc::ServerReadReactor<v1::PutStepRequest>* NewPutStepStream(const Api& api, const Caller& caller,
                                                              v1::PutStepResponse* response);
// `request` must outlive the stream.
grpc::ServerWriteReactor<v1::GetStepResponse>* NewGetStepStream(const Api& api,
                                                                const Caller& caller,
                                                                const v1::GetStepRequest& request);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_WORKER_STREAMS_H_
