#ifndef PLUMBLINE_WORKER_LEASE_GRPC_COORDINATOR_H_
#define PLUMBLINE_WORKER_LEASE_GRPC_COORDINATOR_H_

#include <memory>
#include <string>

#include "common/access/client_channel.h"
#include "worker/lease/coordinator.h"

namespace plumbline::worker {

// The coordinator that `channels` lead to. Connects when it is first called and
// again whenever the connection is lost.
std::unique_ptr<Coordinator> MakeGrpcCoordinator(const ClientChannels& channels);

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_LEASE_GRPC_COORDINATOR_H_
