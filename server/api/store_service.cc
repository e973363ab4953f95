#include "server/api/store_service.h"

#include "common/status.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "server/api/call.h"

namespace plumbline::server {
namespace {

class StoreServiceImpl final : public v1::StoreService::CallbackService {
 public:
  explicit StoreServiceImpl(const Api& api) : api_(api) {}

  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext*, const v1::ListRunsRequest*,
                                     v1::ListRunsResponse*) override {
    return RefuseAll("StoreService/ListRuns");
  }
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext*, const v1::GetRunRequest*,
                                   v1::Run*) override {
    return RefuseAll("StoreService/GetRun");
  }
  grpc::ServerUnaryReactor* VerifyRun(grpc::CallbackServerContext*, const v1::VerifyRunRequest*,
                                      v1::VerifyRunResponse*) override {
    return RefuseAll("StoreService/VerifyRun");
  }
  grpc::ServerUnaryReactor* AdoptRun(grpc::CallbackServerContext*, const v1::AdoptRunRequest*,
                                     v1::Run*) override {
    return RefuseAll("StoreService/AdoptRun");
  }
  grpc::ServerUnaryReactor* DeleteRun(grpc::CallbackServerContext*, const v1::DeleteRunRequest*,
                                      google::protobuf::Empty*) override {
    return RefuseAll("StoreService/DeleteRun");
  }
  grpc::ServerUnaryReactor* Compact(grpc::CallbackServerContext*, const v1::CompactRequest*,
                                    v1::CompactResponse*) override {
    return RefuseAll("StoreService/Compact");
  }
  grpc::ServerUnaryReactor* Backup(grpc::CallbackServerContext*, const v1::BackupRequest*,
                                   v1::BackupResponse*) override {
    return RefuseAll("StoreService/Backup");
  }

 private:
  grpc::ServerUnaryReactor* RefuseAll(absl::string_view method) const {
    return Refuse(
        api_, method,
        WithReason(absl::UnimplementedError("this server has no step store"), "UNIMPLEMENTED"));
  }

  const Api& api_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewStoreService(const Api& api) {
  return std::make_unique<StoreServiceImpl>(api);
}

}  // namespace plumbline::server
