#include "client/session.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "client/connector.h"
#include "client/interrupt.h"
#include "common/clock_fake.h"
#include "common/status.h"
#include "common/test_listener.h"

namespace plumbline::client {
namespace {

// Nobody is there, and it knows why.
class Refused final : public Connector {
 public:
  Refused(std::string address, absl::Status why)
      : address_(std::move(address)), why_(std::move(why)) {}

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect() override {
    return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }
  absl::Status WhyNotConnected() const override { return why_; }
  bool is_embedded() const override { return false; }
  std::string Description() const override { return "the server at " + address_; }

 private:
  const std::string address_;
  const absl::Status why_;
};

// By its clock no time passes: were it waited, this would not end.
TEST(SessionTest, WhatStandsInTheWayIsToldAtOnce) {
  // Nobody listens there any more.
  const std::string address = TestListener().address();
  const absl::Status why = FieldError("--ca", "is not trusted", "another");
  FakeClock clock;
  Interrupt interrupt;
  Session session(std::make_unique<Refused>(address, why), &clock, &interrupt, {});
  EXPECT_EQ(session.Connect(), why);
}

}  // namespace
}  // namespace plumbline::client
