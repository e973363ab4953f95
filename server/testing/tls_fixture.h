// A coordinator with TLS on both ports, for tests, and clients of both.
#ifndef PLUMBLINE_SERVER_TESTING_TLS_FIXTURE_H_
#define PLUMBLINE_SERVER_TESTING_TLS_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/access/access_file.h"
#include "common/files.h"
#include "common/tls/test_certificates.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {

inline int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

class TlsTest : public CoordinatorTest {
 protected:
  TlsTest() {
    base_ = options_.data_dir + ".";
    options_.tls.certificate = base_ + "cert.pem";
    options_.tls.key = base_ + "key.pem";
    options_.reload_interval = absl::Milliseconds(20);
    AccessFile access;
    AccessEntry admin;
    admin.name = "admin";
    admin.role = v1::ROLE_ADMIN;
    admin.created = absl::FromUnixSeconds(1);
    token_ = AddAccess(admin, &access).value();
    AccessEntry node = admin;
    node.name = "node";
    node.role = v1::ROLE_WORKER;
    node.certificate = "node-1";
    EXPECT_TRUE(AddAccess(node, &access).ok());
    options_.access_file = base_ + "access.json";
    EXPECT_TRUE(SaveAccessFile(options_.access_file, access).ok());
    Install(authority_.Issue("server"));
  }

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  void Install(const TestCertificate& certificate) {
    Write(options_.tls.certificate, certificate.certificate);
    Write(options_.tls.key, certificate.key);
  }
  void RequireClientCertificates() {
    options_.tls.client_ca = base_ + "ca.pem";
    Write(options_.tls.client_ca, authority_.certificate());
  }
  void StartServer() {
    absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Start(options_);
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    coordinator_ = *std::move(coordinator);
    grpc_port_ = PortOf(coordinator_->addresses()[0]);
    http_port_ = PortOf(coordinator_->http_address());
  }

  std::shared_ptr<grpc::Channel> Connect(const std::string& ca, const TestCertificate& own = {}) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca;
    options.pem_cert_chain = own.certificate;
    options.pem_private_key = own.key;
    grpc::ChannelArguments arguments;
    // Each test, and each channel, shakes hands by itself.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("localhost:", grpc_port_),
                                     grpc::SslCredentials(options), arguments);
  }

  template <typename Method, typename Stub, typename Request>
  grpc::Status CallWith(Stub* stub, Method method, const Request& request, bool with_token) {
    grpc::ClientContext context;
    SetDeadline(&context);
    if (with_token) context.AddMetadata("authorization", "Bearer " + token_);
    v1::ListJobsResponse response;
    return (stub->*method)(&context, request, &response);
  }
  grpc::Status List(const std::shared_ptr<grpc::Channel>& channel, bool with_token = true) {
    const auto stub = v1::JobService::NewStub(channel);
    return CallWith(stub.get(), &v1::JobService::Stub::ListJobs, v1::ListJobsRequest(), with_token);
  }

  std::unique_ptr<httplib::SSLClient> Https(const TestCertificate& own = {}) {
    Write(base_ + "roots.pem", authority_.certificate());
    std::unique_ptr<httplib::SSLClient> client;
    if (own.certificate.empty()) {
      client = std::make_unique<httplib::SSLClient>("localhost", http_port_);
    } else {
      Write(base_ + "own.pem", own.certificate);
      Write(base_ + "own.key", own.key);
      client = std::make_unique<httplib::SSLClient>("localhost", http_port_, base_ + "own.pem",
                                                    base_ + "own.key");
    }
    client->set_ca_cert_path((base_ + "roots.pem").c_str());
    client->enable_server_certificate_verification(true);
    return client;
  }

  std::string ListOverHttps(httplib::SSLClient* client, const httplib::Headers& headers) {
    const auto result = client->Post("/plumbline.v1.JobService/ListJobs", headers,
                                     std::string(5, '\0'), "application/grpc-web");
    return result ? result->body : "";
  }

  TestAuthority authority_;
  std::string base_;
  std::string token_;
  int grpc_port_ = 0;
  int http_port_ = 0;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_TLS_FIXTURE_H_
