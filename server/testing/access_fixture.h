// A coordinator with a token of every role, for tests.
#ifndef PLUMBLINE_SERVER_TESTING_ACCESS_FIXTURE_H_
#define PLUMBLINE_SERVER_TESTING_ACCESS_FIXTURE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/access/access_file.h"
#include "common/access/token.h"
#include "common/grpc_status.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {

inline constexpr std::array<const char*, 4> kRoles = {"viewer", "submitter", "worker", "admin"};

inline std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

// Tokens by the names of their roles, and "revoked" and "expired".
class AccessTest : public CoordinatorTest {
 protected:
  AccessTest() {
    path_ = options_.data_dir + ".access.json";
    for (const char* const role : kRoles) Add(role, role);
    Add("revoked", "admin");
    Add("expired", "admin", absl::FromUnixSeconds(1));
    EXPECT_TRUE(RevokeAccess("revoked", absl::FromUnixSeconds(2), &file_).ok());
    Save();
    options_.access_file = path_;
    options_.reload_interval = absl::Milliseconds(20);
  }

  void Add(const std::string& name, const std::string& role,
           absl::Time expires = absl::InfiniteFuture()) {
    AccessEntry entry;
    entry.name = name;
    entry.role = ParseRole(role, "role").value();
    entry.created = absl::FromUnixSeconds(1);
    entry.expires = expires;
    tokens_[name] = AddAccess(entry, &file_).value();
  }
  void Save() { ASSERT_TRUE(SaveAccessFile(path_, file_).ok()); }

  // What a call of any method comes to. A call that is let in and does not
  // end by itself is CANCELLED once it has answered.
  grpc::Status CallMethod(const std::string& path, const std::string& authorization,
                          const std::string& message = "") {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetDeadline(&context);
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, path, &queue);
    const auto wait = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
      return ok;
    };
    call->StartCall(nullptr);
    if (wait()) {
      const grpc::Slice slice(message);
      call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      wait();
      grpc::ByteBuffer answer;
      call->Read(&answer, nullptr);
      // Of a unary call the status has come with it, and this changes nothing.
      if (wait()) context.TryCancel();
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    queue.Shutdown();
    return status;
  }

  grpc::Status CallAs(const std::string& name, const google::protobuf::MethodDescriptor& method) {
    return CallMethod(PathOf(method), absl::StrCat("Bearer ", tokens_[name]));
  }

  template <typename Request, typename Response, typename Stub>
  absl::StatusOr<Response> CallAs(const std::string& name, Stub* stub,
                                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                               Response*),
                                  const Request& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    context.AddMetadata("authorization", absl::StrCat("Bearer ", tokens_[name]));
    Response response;
    const grpc::Status status = (stub->*method)(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  std::string path_;
  AccessFile file_;
  std::map<std::string, std::string> tokens_;  // By name.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_ACCESS_FIXTURE_H_
