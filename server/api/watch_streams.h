#ifndef PLUMBLINE_SERVER_API_WATCH_STREAMS_H_
#define PLUMBLINE_SERVER_API_WATCH_STREAMS_H_

#include "proto/plumbline/v1/job_service.pb.h"
#include "server/api/api.h"
#include "server/caller.h"

namespace grpc {
class ByteBuffer;
template <class Response>
class ServerWriteReactor;
}  // namespace grpc

namespace plumbline::server {

// Both are started and delete themselves when they are done. `api` must outlive them. The first
// sends encoded JobEvents.
grpc::ServerWriteReactor<grpc::ByteBuffer>* NewWatchJobStream(const Api& api, const Caller& caller,
                                                              const v1::WatchJobRequest& request);
grpc::ServerWriteReactor<v1::WatchJobsResponse>* NewWatchJobsStream(
    const Api& api, const Caller& caller, const v1::WatchJobsRequest& request);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_WATCH_STREAMS_H_
