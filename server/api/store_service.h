#ifndef PLUMBLINE_SERVER_API_STORE_SERVICE_H_
#define PLUMBLINE_SERVER_API_STORE_SERVICE_H_

#include <memory>

#include "server/api/api.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace plumbline::server {

// `api` must outlive the service.
std::unique_ptr<grpc::Service> NewStoreService(const Api& api);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_STORE_SERVICE_H_
